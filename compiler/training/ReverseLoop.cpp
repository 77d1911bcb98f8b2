// SPDX-License-Identifier: Apache-2.0
//
// Each loop gets a reversed loop, which runs the iterations from the last to the first:
//
//   %y = kiln.repeat 12 (%x = %init) { ... }
//   %y, %saved... = kiln.repeat 12 (%x = %init) -> (types) { ... }
//   %dinit, %dw... = kiln.scan (%dx = %dy) over (%a = %saved, ...) -> (types) reverse layers { ... }
//
// Values of the forward loop that the reversed body reads are saved, except for results of pure data movement, which
// are recomputed. With activation checkpointing all of a layer is recomputed: then only the loop-carried values are
// saved. A weight that a loop over time multiplies by gets its gradient after the loop, by one GEMM with the rows of
// all iterations.
#include "compiler/training/Reverse.h"

#include "compiler/dialect/ReadValues.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::kiln {

namespace {

/// Whether the op can be recomputed. Ops that depend on states cannot: these have other values afterwards.
bool canBeDoneAgain(Operation *op) {
  return !op->walk([](Operation *inner) {
              return isa<StateOp, AppendOp, StoreOp, AssignOp, RequireFiniteOp>(inner) ? WalkResult::interrupt()
                                                                                       : WalkResult::advance();
            }).wasInterrupted();
}

/// Builds the reversed loop.
class LoopReverser {
public:
  LoopReverser(OpBuilder &builder, const GradientRequest &request, LoopInterface loop)
      : builder(builder), request(request), loop(loop), loc(loop.getLoc()), body(*loop.getYield()->getBlock()),
        inner(region.emplaceBlock()) {}

  /// Builds the body. `ofResults`: gradients of the loop's results. `captured`: values from enclosing blocks whose
  /// gradients are wanted. They depend on a parameter, as all of `active` do.
  LogicalResult run(ArrayRef<Value> ofResults, ArrayRef<Value> captured, const llvm::DenseSet<Value> &active);
  /// Makes the forward loop save what the reversed one reads, and creates the reversed loop at the insertion point.
  ScanOp create();

  SmallVector<Value> summed;        // captured values whose gradients are accumulated in the loop
  SmallVector<Postponed> postponed; // dy of each is an output after the others, then x unless it is a sequence
  Value sequence(size_t number) const { return sequences[number]; }

  SmallVector<Value> carried;    // the loop's carried values that have gradients: floats
  SmallVector<Value> slices;     // slices of the sequences that have gradients, which are the first outputs
  SmallVector<StringAttr> names; // the parameters whose gradients are the other outputs

private:
  Value addSequence(Value sequence, Type slice) {
    sequences.push_back(sequence);
    return inner.addArgument(slice, loc);
  }
  Value save(Value value);
  Value resolve(Value value);
  void resolveAll();
  void dropSequences(YieldOp yield);
  void replaceLoop();
  RankedTensorType stackedType(Value value);

  OpBuilder &builder;
  const GradientRequest &request;
  LoopInterface loop;
  Location loc;
  Block &body;
  Region region;
  Block &inner;
  SmallVector<Value> inits;     // gradients of carried values, then zeros for the sums of captured values' gradients
  SmallVector<Value> sequences; // null for those that the forward loop is still to save
  SmallVector<Value> saved;     // values of the forward body, in the order of the null sequences
  SmallVector<Value> outputs;
  IRMapping here; // values of the forward body -> of the reversed body
};

LogicalResult LoopReverser::run(ArrayRef<Value> ofResults, ArrayRef<Value> captured,
                                const llvm::DenseSet<Value> &active) {
  OpBuilder::InsertionGuard guard(builder);
  GradientBuilder b(builder, loc);
  for (Value value : captured)
    inits.push_back(b.zeros(rankedType(value)));
  builder.setInsertionPointToEnd(&inner);
  Reverse inside(builder, request, active);
  SmallVector<std::pair<Value, Value>> seeds; // yielded values and their gradients
  auto seed = [&](Value yielded, Value gradient) { seeds.emplace_back(yielded, gradient); };
  OperandRange yielded = loop.getYield()->getOperands();
  for (auto [i, value] : llvm::enumerate(loop.getCarried()))
    if (isFloat(value)) {
      carried.push_back(value);
      inits.insert(inits.begin() + static_cast<ptrdiff_t>(carried.size() - 1), ofResults[i]);
      seed(yielded[i], inner.addArgument(value.getType(), loc));
      inside.activate(value);
    }
  SmallVector<Value> sums;
  for (Value value : captured)
    sums.push_back(inner.addArgument(value.getType(), loc));
  for (auto [gradient, output] : llvm::zip_equal(ofResults.drop_front(loop.getNumCarried()), loop.getYieldedOutputs()))
    if (isFloat(output))
      seed(output, addSequence(gradient, output.getType()));
  for (auto [sequence, slice] : llvm::zip_equal(loop.getSequences(), loop.getSlices())) {
    here.map(slice, addSequence(sequence, slice.getType()));
    if (active.contains(sequence)) {
      slices.push_back(slice);
      inside.activate(slice);
    }
  }
  if (!loop.isOverLayers())
    inside.shared.insert_range(captured);
  inside.findActive(body);
  for (auto [yielded, gradient] : seeds)
    if (inside.isActive(yielded))
      inside.add(yielded, gradient, loc);
  if (failed(inside.run(body, loop.getYield())))
    return failure();

  auto orZeros = [&](Value value) {
    Value gradient = inside.gradientOf(value);
    return gradient ? gradient : b.zeros(rankedType(value));
  };
  outputs = llvm::map_to_vector(slices, orZeros);
  for (auto &[name, gradient] : inside.parameters) {
    names.push_back(name);
    outputs.push_back(gradient);
  }
  SmallVector<Value> next = llvm::map_to_vector(carried, orZeros);
  for (auto [value, sum] : llvm::zip_equal(captured, sums))
    if (Value own = inside.gradientOf(value)) {
      summed.push_back(value);
      next.push_back(b.add(sum, own));
    } else {
      inits.erase(inits.begin() + static_cast<ptrdiff_t>(next.size()));
      inner.eraseArgument(cast<BlockArgument>(sum).getArgNumber());
    }
  postponed = inside.postponed;
  for (Postponed &each : postponed)
    llvm::append_range(outputs, ArrayRef{each.dy, Value(each.product.getX())});
  llvm::append_range(next, outputs);
  auto yield = YieldOp::create(builder, loc, next);
  resolveAll();
  dropSequences(yield);
  return success();
}

/// Drops stacked outputs that are already sequences of the reversed loop.
void LoopReverser::dropSequences(YieldOp yield) {
  const size_t first = outputs.size() - 2 * postponed.size(), numCarried = inits.size();
  for (size_t i = postponed.size(); i-- > 0;) {
    const size_t output = first + 2 * i + 1;
    Value rows = yield.getOperand(numCarried + output);
    if (auto widened = rows.getDefiningOp<CastOp>())
      rows = widened.getX();
    auto slice = dyn_cast<BlockArgument>(rows);
    if (!slice || slice.getOwner() != &inner || slice.getArgNumber() < numCarried)
      continue;
    postponed[i].rows = slice.getArgNumber() - numCarried;
    outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(output));
    yield->eraseOperand(numCarried + output);
  }
}

/// Returns the value that is stacked for `value`, rounded at the end of the body if a narrower type was requested.
Value LoopReverser::save(Value value) {
  RankedTensorType type = rankedType(value);
  if (!request.options.keptAs || !type.getElementType().isF32() || type.getRank() == 0)
    return value;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop.getYield());
  return CastOp::create(builder, loc, type.clone(request.options.keptAs), value);
}

/// Returns a forward value for use in the reversed body: recomputed or saved.
Value LoopReverser::resolve(Value value) {
  if (value.getParentBlock() != &body)
    return value;
  if (Value known = here.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  const bool recomputes = op && request.options.recomputesLayers && loop.isOverLayers() && canBeDoneAgain(op);
  if (!recomputes && (!op || !isDoneAgain(op))) {
    saved.push_back(save(value));
    Value slice = addSequence({}, saved.back().getType());
    if (slice.getType() != value.getType())
      slice = CastOp::create(builder, loc, value.getType(), slice);
    here.map(value, slice);
    return slice;
  }
  for (Value operand : readBy(op))
    (void)resolve(operand);
  builder.clone(*op, here);
  return here.lookup(value);
}

void LoopReverser::resolveAll() {
  llvm::SetVector<Value> read;
  inner.walk([&](Operation *op) { read.insert_range(op->getOperands()); });
  builder.setInsertionPointToStart(&inner);
  for (Value value : read)
    if (Value own = resolve(value); own != value)
      value.replaceUsesWithIf(own,
                              [&](OpOperand &use) { return inner.findAncestorOpInBlock(*use.getOwner()) != nullptr; });
}

RankedTensorType LoopReverser::stackedType(Value value) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(value));
  extents.insert(extents.begin(), loop.getTripCount());
  const unsigned symbols = std::max(getNumSymbols(value.getType()), getNumSymbols(loop->getOperandTypes()));
  return getTensorType(extents, rankedType(value).getElementType(), symbols);
}

/// Replaces the forward loop by one that also stacks the saved values.
void LoopReverser::replaceLoop() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  SmallVector<Type> stacked(loop.getStacked().getTypes());
  for (Value value : saved)
    stacked.push_back(stackedType(value));
  loop.getYield()->insertOperands(loop.getYield()->getNumOperands(), saved);
  Operation *next;
  if (auto repeat = dyn_cast<RepeatOp>(loop.getOperation())) {
    next = RepeatOp::create(builder, loc, repeat.getCount(), repeat.getInits(), stacked);
  } else {
    auto scan = cast<ScanOp>(loop.getOperation());
    next = ScanOp::create(builder, loc, scan.getInits(), scan.getSequences(), stacked, scan.getReverse(),
                          scan.getLayers());
  }
  next->getRegion(0).takeBody(loop->getRegion(0));
  loop->replaceAllUsesWith(next->getResults().take_front(loop->getNumResults()));
  loop->erase();
  loop = cast<LoopInterface>(next);
}

ScanOp LoopReverser::create() {
  const SmallVector<Type> stacked =
      llvm::map_to_vector(outputs, [&](Value value) -> Type { return stackedType(value); });
  replaceLoop();
  auto fromLoop = loop.getStacked().take_back(saved.size()).begin();
  for (Value &sequence : sequences)
    if (!sequence)
      sequence = *fromLoop++;
  auto forward = dyn_cast<ScanOp>(loop.getOperation());
  auto scan = ScanOp::create(builder, loc, inits, sequences, stacked, /*reverse=*/!(forward && forward.getReverse()),
                             loop.isOverLayers());
  scan.getBody().takeBody(region);
  return scan;
}

} // namespace

LogicalResult Reverse::reverseLoop(LoopInterface loop) {
  SmallVector<Value> ofResults =
      llvm::map_to_vector(loop->getResults(), [&](Value result) { return ofResult(result); });
  llvm::SetVector<Value> above;
  getUsedValuesDefinedAbove(loop->getRegion(0), above);
  SmallVector<Value> captured = llvm::filter_to_vector(above, [&](Value value) { return isActive(value); });
  // The initial value or the sequence of each argument of the body.
  DenseMap<Value, Value> outside;
  for (auto [argument, operand] : llvm::zip_equal(loop.getYield()->getBlock()->getArguments(), loop->getOperands()))
    outside[argument] = operand;
  const Location loc = loop.getLoc();
  LoopReverser reverser(builder, request, loop);
  if (failed(reverser.run(ofResults, captured, active)))
    return failure();
  SmallVector<Value> inits, inputs;
  for (Value value : reverser.carried)
    inits.push_back(outside[value]);
  llvm::append_range(inits, reverser.summed);
  for (Value slice : reverser.slices)
    inputs.push_back(outside[slice]);
  ScanOp scan = reverser.create();
  for (auto [value, gradient] : llvm::zip_equal(inits, scan.getLast()))
    if (isActive(value))
      add(value, gradient, loc);
  for (auto [value, gradient] : llvm::zip_equal(inputs, scan.getStacked().take_front(inputs.size())))
    add(value, gradient, loc);
  ValueRange others = scan.getStacked().drop_front(inputs.size());
  for (auto [name, gradient] : llvm::zip_equal(reverser.names, others.take_front(reverser.names.size())))
    addParameter(name, gradient, loc);
  auto stacked = others.drop_front(reverser.names.size()).begin();
  GradientBuilder b(builder, loc);
  for (const Postponed &each : reverser.postponed) {
    Value dy = *stacked++, x = each.rows ? reverser.sequence(*each.rows) : Value(*stacked++);
    LinearOp product = each.product;
    Type element = rankedType(dy).getElementType();
    if (rankedType(x).getElementType() != element)
      x = b.createAs<CastOp>(rankedType(x).clone(element), x);
    add(product.getWeight(), weightGradient(b, product, x, dy), loc);
  }
  return success();
}

} // namespace mlir::kiln
