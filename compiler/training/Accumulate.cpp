// SPDX-License-Identifier: Apache-2.0
//
//   func @train(%tokens: tensor<32xi32>) { ...; return %loss, %y }
//
//   func @train(%tokens: tensor<4x32xi32>) {
//     %sum, %dw..., %ys = kiln.scan (zeros) over (%number = 0, 1, 2, 3, %t = %tokens) {
//       ...
//       kiln.yield %sum + %loss, %dw + its gradient, %y
//     }
//     return %sum / 4, %ys
//   }
//
// For a pipeline stage that waits for the gradients of the next stage:
//
//   %saved... = kiln.scan () over (%number = 0, 1, 2, 3, %t = %tokens) ahead 3 {
//     ...; kiln.send %y; kiln.yield %a, ...
//   }
//   %dw... = kiln.scan (zeros) over (%number = 0, 1, 2, 3, %t = %tokens, %a = %saved, ...) {
//     %dy = kiln.receive going back
//     ...
//   }
#include "compiler/dialect/Training.h"
#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/dialect/gradients/RankParts.h"
#include "compiler/training/Differentiate.h"
#include "compiler/training/Passes.h"
#include "compiler/training/TrainProcess.h"
#include "mlir/IR/IRMapping.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

namespace {

class Accumulator {
public:
  Accumulator(func::FuncOp function, const kd::TrainingRequest &request)
      : function(function), count(request.getMicroBatches()), block(function.getBody().front()),
        builder(function.getContext()), b(builder, function.getLoc()), inputs(kd::getLossInputs(function, request)) {}

  void run(int64_t parts, double factor, MutableArrayRef<Value> gradients);
  void runApart(int64_t ahead, MutableArrayRef<Value> gradients);

private:
  RankedTensorType stacked(Type type, int64_t extent) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<AffineExpr> extents = kd::getExtents(tensor);
    extents.insert(extents.begin(), builder.getAffineConstantExpr(extent));
    return kd::getTensorType(extents, tensor.getElementType(), kd::getNumSymbols(tensor));
  }
  SmallVector<Type> stacked(TypeRange types, int64_t extent) {
    return llvm::map_to_vector(types, [&](Type type) -> Type { return stacked(type, extent); });
  }
  Value integers(ArrayRef<int32_t> values, ArrayRef<int64_t> shape) {
    return b.create<kd::ConstantOp>(
        DenseIntElementsAttr::get(RankedTensorType::get(shape, builder.getI32Type()), values));
  }
  SmallVector<Value> zerosOf(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return b.zeros(kd::rankedType(value)); });
  }
  void stackInputs();
  SmallVector<Value> getSequences();
  kd::ScanOp createLoop(ValueRange inits, ValueRange sequences, TypeRange types) {
    return kd::ScanOp::create(builder, function.getLoc(), inits, sequences, types, /*reverse=*/false);
  }
  kd::ScanOp createParts(int64_t parts, TypeRange types);
  void move(ArrayRef<Operation *> ops, kd::ScanOp loop);
  void yieldSums(kd::ScanOp loop, ValueRange sums, ValueRange others);
  void setStep(Block &body, Value number);

  func::FuncOp function;
  const int64_t count;
  Block &block;
  OpBuilder builder;
  kd::GradientBuilder b;
  SmallVector<BlockArgument> inputs; // inputs of the loss function
  Value numbers;                     // numbers of the micro-batches
};

/// Gives each micro-batch its own dropout: micro-batch i of step t uses the random numbers of step t * count + i.
void Accumulator::setStep(Block &body, Value number) {
  Value step = kd::getInput(function, "step");
  if (!step || step.use_empty())
    return;
  builder.setInsertionPointToStart(&body);
  Value first = b.mul(step, integers(static_cast<int32_t>(count), {})), own = b.add(first, number);
  step.replaceUsesWithIf(own, [&](OpOperand &use) {
    return use.getOwner() != first.getDefiningOp() && body.findAncestorOpInBlock(*use.getOwner());
  });
}

/// Changes the function's inputs to those of all micro-batches. Values that loops need are inserted at the beginning.
void Accumulator::stackInputs() {
  builder.setInsertionPointToStart(&block);
  numbers = integers(llvm::to_vector(llvm::seq<int32_t>(0, count)), {count});
  for (BlockArgument input : inputs)
    input.setType(stacked(input.getType(), count));
}

/// Returns the sequences of a loop over all micro-batches: their numbers, then the inputs.
SmallVector<Value> Accumulator::getSequences() {
  SmallVector<Value> sequences{numbers};
  llvm::append_range(sequences, inputs);
  return sequences;
}

/// Creates a loop over `parts` groups with the same number of micro-batches.
kd::ScanOp Accumulator::createParts(int64_t parts, TypeRange types) {
  SmallVector<Value> sequences = getSequences();
  for (Value &sequence : sequences) {
    SmallVector<AffineExpr> extents = kd::getExtents(kd::rankedType(sequence));
    extents.front() = builder.getAffineConstantExpr(count / parts);
    extents.insert(extents.begin(), builder.getAffineConstantExpr(parts));
    sequence = b.reshape(sequence, extents);
  }
  return createLoop({}, sequences, types);
}

/// Moves ops of the function to the body of a loop over micro-batches.
void Accumulator::move(ArrayRef<Operation *> ops, kd::ScanOp loop) {
  Block &body = loop.getBody().front();
  for (Operation *op : ops)
    op->moveBefore(&body, body.end());
  const unsigned first = loop.getNumCarried() + 1;
  for (auto [i, input] : llvm::enumerate(inputs))
    input.replaceUsesWithIf(body.getArgument(first + i),
                            [&](OpOperand &use) { return body.findAncestorOpInBlock(*use.getOwner()) != nullptr; });
}

void Accumulator::yieldSums(kd::ScanOp loop, ValueRange sums, ValueRange others) {
  Block &body = loop.getBody().front();
  builder.setInsertionPointToEnd(&body);
  SmallVector<Value> yielded;
  for (auto [before, sum] : llvm::zip_equal(loop.getCarried(), sums))
    yielded.push_back(b.add(before, sum));
  llvm::append_range(yielded, others);
  kd::YieldOp::create(builder, function.getLoc(), yielded);
}

/// Moves the whole function to the body of a loop over micro-batches. Its own inputs get a first axis, over which the
/// loop iterates; the loss and the gradients become sums times `factor`, and other results are stacked. With `parts`,
/// there are that many sums over equal numbers of micro-batches, which are added as a binary tree.
void Accumulator::run(int64_t parts, double factor, MutableArrayRef<Value> gradients) {
  Operation *end = block.getTerminator();
  SmallVector<Value> sums{end->getOperand(0)}, others(llvm::drop_begin(end->getOperands()));
  llvm::append_range(sums, gradients);
  auto moved = llvm::map_to_vector(block.without_terminator(), [](Operation &op) { return &op; });
  const SmallVector<Type> types = stacked(TypeRange(ValueRange(others)), count / parts);
  SmallVector<Type> ofParts = llvm::to_vector(TypeRange(ValueRange(sums)));
  llvm::append_range(ofParts, types);
  stackInputs();
  const SmallVector<Value> zeros = zerosOf(sums);
  kd::ScanOp outer;
  SmallVector<Value> sequences = getSequences();
  if (parts > 1) {
    outer = createParts(parts, stacked(ofParts, parts));
    sequences.assign(outer.getBody().args_begin(), outer.getBody().args_end());
    builder.setInsertionPointToStart(&outer.getBody().front());
  }
  kd::ScanOp loop = createLoop(zeros, sequences, types);
  Block &body = loop.getBody().front();
  move(moved, loop);
  for (Value &value : others) // a result may have been an input
    if (auto found = llvm::find(inputs, value); found != inputs.end())
      value = body.getArgument(loop.getNumCarried() + 1 + (found - inputs.begin()));
  yieldSums(loop, sums, others);
  setStep(body, body.getArgument(sums.size()));

  SmallVector<Value> results(loop->getResults());
  if (outer) {
    builder.setInsertionPointToEnd(&outer.getBody().front());
    kd::YieldOp::create(builder, function.getLoc(), results);
    results.assign(outer->result_begin(), outer->result_end());
  }
  builder.setInsertionPoint(end);
  auto sumAt = [&](size_t i) { return b.scale(outer ? kd::addAsTree(b, results[i]) : results[i], factor); };
  end->setOperand(0, sumAt(0));
  for (auto [i, type] : llvm::enumerate(stacked(TypeRange(ValueRange(others)), count))) {
    Value result = results[sums.size() + i];
    end->setOperand(i + 1, outer ? b.reshape(result, kd::getExtents(cast<RankedTensorType>(type))) : result);
  }
  for (auto [i, gradient] : llvm::enumerate(gradients))
    gradient = sumAt(i + 1);
  function.setType(builder.getFunctionType(block.getArgumentTypes(), end->getOperandTypes()));
}

/// The values of the first loop that the second loop uses. Values that are cheap enough are recomputed, the others are
/// saved.
class Crossing {
public:
  explicit Crossing(ArrayRef<Operation *> ops) : before(ops.begin(), ops.end()) {}

  void find(ArrayRef<Operation *> ops) {
    for (Operation *op : ops)
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          find(operand);
      });
  }
  ArrayRef<Value> getSaved() const { return saved.getArrayRef(); }
  /// Inserts the recomputation at the beginning of the second body and replaces the uses. The body's arguments after
  /// the carried values are the number and the inputs, as in the first loop, then the saved values.
  void replaceIn(kd::ScanOp second, kd::ScanOp first) {
    Block &body = second.getBody().front();
    IRMapping here;
    auto arguments = second.getSlices();
    const size_t shared = first.getSlices().size();
    for (auto [from, to] : llvm::zip_equal(first.getSlices(), arguments.take_front(shared)))
      here.map(from, to);
    for (auto [from, to] : llvm::zip_equal(getSaved(), arguments.drop_front(shared)))
      here.map(from, to);
    OpBuilder builder(&body, body.begin());
    for (Operation *op : again)
      builder.clone(*op, here);
    for (auto [from, to] : here.getValueMap())
      Value(from).replaceUsesWithIf(
          to, [&](OpOperand &use) { return body.findAncestorOpInBlock(*use.getOwner()) != nullptr; });
  }

private:
  void find(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !before.contains(op) || again.contains(op) || saved.contains(value))
      return;
    if (!kd::isDoneAgain(op)) {
      saved.insert(value);
      return;
    }
    for (Value operand : op->getOperands())
      find(operand);
    again.insert(op);
  }

  llvm::DenseSet<Operation *> before;
  llvm::SetVector<Operation *> again;
  llvm::SetVector<Value> saved;
};

/// Does the same for a pipeline stage that receives gradients from the next one. The ops before the receive become a
/// separate loop, which is at most `ahead` - 1 iterations ahead of the second loop. The only result is the loss of a
/// stage that does not compute it, a constant.
void Accumulator::runApart(int64_t ahead, MutableArrayRef<Value> gradients) {
  Operation *end = block.getTerminator(), *loss = end->getOperand(0).getDefiningOp();
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    if (&op != loss)
      ops.push_back(&op);
  auto isSeed = [](Operation *op) {
    auto receive = dyn_cast<kd::ReceiveOp>(op);
    return receive && receive.getWay() == kd::Way::Back;
  };
  const size_t at = llvm::find_if(ops, isSeed) - ops.begin();
  const ArrayRef before = ArrayRef(ops).take_front(at), after = ArrayRef(ops).drop_front(at);
  Crossing crossing(before);
  crossing.find(after);
  const SmallVector<Value> saved(crossing.getSaved());

  const SmallVector<Type> types = stacked(TypeRange(ValueRange(saved)), count);
  stackInputs();
  const SmallVector<Value> zeros = zerosOf(ValueRange(gradients));
  SmallVector<Value> sequences = getSequences();
  kd::ScanOp first = createLoop({}, sequences, types);
  llvm::append_range(sequences, first.getStacked());
  kd::ScanOp second = createLoop(zeros, sequences, {});
  first.setAhead(std::min(ahead, count));
  move(before, first);
  move(after, second);
  yieldSums(first, {}, saved);
  yieldSums(second, ValueRange(gradients), {});
  crossing.replaceIn(second, first);
  for (kd::ScanOp loop : {first, second})
    setStep(loop.getBody().front(), loop.getBody().getArgument(loop.getNumCarried()));
  builder.setInsertionPoint(end);
  for (auto [gradient, sum] : llvm::zip_equal(gradients, second.getLast()))
    gradient = b.scale(sum, 1.0 / static_cast<double>(count));
  if (loss)
    loss->moveBefore(end);
  function.setType(builder.getFunctionType(block.getArgumentTypes(), end->getOperandTypes()));
}

LogicalResult accumulate(func::FuncOp function, const kd::TrainingRequest &request) {
  FailureOr<SmallVector<kd::GradientResult>> results = kd::takeGradients(function, request);
  if (failed(results))
    return failure();
  SmallVector<Value> gradients =
      llvm::map_to_vector(*results, [](const kd::GradientResult &each) { return each.value; });
  Accumulator accumulator(function, request);
  if (isLastStage(function)) {
    const int64_t parts = countBatchParts(function, request);
    // Replicas add sums in a fixed order, which become means later.
    const bool isAveragedLater = parts > 0 && kd::getNumRanks(function, kd::Group::Replicas) > 1;
    const double factor = isAveragedLater ? 1 : 1.0 / static_cast<double>(request.getMicroBatches());
    accumulator.run(std::max<int64_t>(parts, 1), factor, gradients);
  } else {
    accumulator.runApart(mostAhead(function), gradients);
  }
  for (auto [each, gradient] : llvm::zip_equal(*results, gradients))
    each.value = gradient;
  kd::addGradients(function, *results);
  return success();
}

} // namespace
} // namespace kiln

namespace mlir::kiln {

#define GEN_PASS_DEF_ACCUMULATE
#include "compiler/training/Passes.h.inc"

namespace {

struct Accumulate : impl::AccumulateBase<Accumulate> {
  using AccumulateBase::AccumulateBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (std::optional<TrainingRequest> request = TrainingRequest::of(function);
          request && request->options.micro_batches > 0 && failed(::kiln::accumulate(function, *request)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace mlir::kiln
