// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/Check.h"
#include "compiler/dialect/StageRoles.h"
#include "compiler/hostcode/HostEmitter.h"
#include "compiler/transforms/RowsInPlace.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

/// Returns the innermost loop over layers around an op.
static kd::LoopInterface stackAround(Operation *op) {
  auto loop = op->getParentOfType<kd::LoopInterface>();
  while (loop && !loop.isOverLayers())
    loop = loop->getParentOfType<kd::LoopInterface>();
  return loop;
}

Value HostEmitter::layerAt(Operation *op) {
  kd::LoopInterface stack = stackAround(op);
  return stack ? layers.lookup(stack) : Value();
}

Value HostEmitter::stage() {
  return LLVM::ZExtOp::create(
      builder, loc, i64, loadElement(i32, loadOfFrame(abi::frame::together), static_cast<int64_t>(kd::Group::Stages)));
}

/// Returns the number of the layer in a pattern of layers, to which each loop contributes a part; null elsewhere.
Value HostEmitter::numberInPattern(Operation *op) {
  const std::string path = kd::getScope(op->getLoc()).str();
  if (!has_number_parts(path))
    return {};
  const std::vector<NumberTerm> terms = number_terms(path);
  auto term = terms.rbegin();
  Value sum = constant(i64, 0);
  for (kd::LoopInterface loop = stackAround(op); loop; loop = stackAround(loop), ++term) {
    if (term == terms.rend())
      return {};
    sum = add(sum, add(multiply(steps.lookup(loop), constant(i64, term->factor)), constant(i64, term->offset)));
  }
  return term == terms.rend() ? sum : Value();
}

Value HostEmitter::tracedLayerAt(Operation *op) {
  kd::LoopInterface stack = stackAround(op);
  if (!stack)
    return constant(i64, -1);
  if (Value number = numberInPattern(op))
    return number;
  Value layer = layers.lookup(stack);
  auto all = entry->getAttrOfType<IntegerAttr>(kd::layersAttrName);
  if (!all)
    return layer;
  const int64_t count = all.getInt(), stages = input.model.parallel->stages; // as in kiln_first_layer
  Value own = stage(), longer = subtract(own, constant(i64, kiln_first_longer_stage(count, stages)));
  Value isLonger = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sgt, longer, constant(i64, 0));
  Value more = LLVM::SelectOp::create(builder, loc, isLonger, longer, constant(i64, 0));
  return add(layer, add(multiply(own, constant(i64, count / stages)), more));
}

Value HostEmitter::addressOfMemory(Operation *op, const StateInterface &state, int64_t copies) {
  Value states = sequence ? loadElement(pointer, sequence, 0) : loadOfFrame(abi::frame::arena);
  Value address = byteAddress(states, offsetOf(input.model, state, input.role)), layer = layerAt(op);
  return copies > 1 && layer ? byteAddress(address, multiply(layer, constant(i64, state.stride))) : address;
}

Value HostEmitter::positionOf(const StateInterface &state, Value memory) {
  Value position = LLVM::LoadOp::create(builder, loc, i64, byteAddress(memory, state.positionOffset()));
  return atMost(position, constant(i64, state.shape.front()));
}

Value HostEmitter::addressOfState(Operation *op, StringRef name, int64_t copies) {
  const StateInterface *state = input.model.findState(name.str());
  Value memory = addressOfMemory(op, *state, copies);
  if (state->room == 0)
    return memory;
  return byteAddress(memory, multiply(positionOf(*state, memory), constant(i64, state->rowBytes())));
}

Value HostEmitter::addressOfAdded(kd::SlideOp slide) {
  const StateInterface *state = input.model.findState(slide.getName().str());
  return byteAddress(addressOfState(slide), state->shape.front() * state->rowBytes());
}

void HostEmitter::copyRows(Value target, Value source, Value rows, Value rowBytes, Value sourceStride) {
  auto function = declare(input.target.copyRows, LLVM::LLVMVoidType::get(builder.getContext()),
                          {pointer, pointer, pointer, i64, i64, i64});
  LLVM::CallOp::create(builder, loc, function,
                       ValueRange{loadOfFrame(abi::frame::worker), target, source, rows, rowBytes, sourceStride});
}

FailureOr<Value> HostEmitter::addressOfAppended(kd::AppendOp append) {
  auto rows = cast<RankedTensorType>(append.getX().getType());
  SmallVector<AffineExpr> before = kd::getExtents(cast<RankedTensorType>(append.getType()));
  before.front() = before.front() - kd::getExtents(rows).front();
  FailureOr<Value> offset = bytesOf(before, rows.getElementType());
  if (llvm::failed(offset))
    return failure();
  return byteAddress(addressOfState(append), *offset);
}

LogicalResult HostEmitter::emitAppend(kd::AppendOp append) {
  if (input.plan.homeOf(append.getX()) == append.getOperation())
    return success();
  auto rows = cast<RankedTensorType>(append.getX().getType()), whole = cast<RankedTensorType>(append.getType());
  SmallVector<AffineExpr> from = kd::getExtents(rows), to = kd::getExtents(whole);
  AffineExpr one = getAffineConstantExpr(1, rows.getContext());
  FailureOr<Value> source = addressOf(append.getX()), target = addressOfAppended(append);
  if (llvm::failed(source) || llvm::failed(target))
    return failure();
  // Copy all of the operand at once or, if only some columns are appended, these columns row by row.
  bool isWhole = rows.getRank() == 1 || from.back() == to.back();
  SmallVector<AffineExpr> outer(isWhole ? ArrayRef(one) : ArrayRef(from).drop_back());
  SmallVector<AffineExpr> inner(isWhole ? ArrayRef(from) : ArrayRef(to).take_back());
  FailureOr<Value> count = evaluate(kd::getProduct(outer, rows.getContext()), symbols),
                   bytes = bytesOf(inner, rows.getElementType()),
                   stride = bytesOf(isWhole ? inner : SmallVector<AffineExpr>{from.back()}, rows.getElementType()),
                   skipped =
                       bytesOf(getAffineConstantExpr(append.getColumn(), rows.getContext()), rows.getElementType());
  if (llvm::failed(count) || llvm::failed(bytes) || llvm::failed(stride) || llvm::failed(skipped))
    return failure();
  copyRows(*target, byteAddress(*source, *skipped), *count, *bytes, *stride);
  return success();
}

LogicalResult HostEmitter::emitSlide(kd::SlideOp slide) {
  if (input.plan.homeOf(slide.getX()) == slide.getOperation())
    return success();
  FailureOr<Value> source = addressOf(slide.getX()), bytes = bytesOf(cast<RankedTensorType>(slide.getX().getType()));
  if (llvm::failed(source) || llvm::failed(bytes))
    return failure();
  copyRows(addressOfAdded(slide), *source, constant(i64, 1), *bytes, *bytes);
  return success();
}

/// Advances the position of the state's rows by the number of added rows. A state of n rows is a ring: rows at n or
/// beyond are also stored n rows earlier, so that its rows are contiguous from every position below n. The added rows
/// are copied to the place of those that leave, or the last of them to the beginning if all leave.
LogicalResult HostEmitter::emitAdvance(kd::StoreOp store, kd::SlideOp slide) {
  const StateInterface *state = input.model.findState(store.getName().str());
  auto added = cast<RankedTensorType>(slide.getX().getType());
  FailureOr<Value> count = evaluate(kd::getExtents(added).front(), symbols);
  if (llvm::failed(count))
    return failure();
  Value memory = addressOfMemory(store, *state, store.getCopies()), rows = constant(i64, state->shape.front()),
        rowBytes = constant(i64, state->rowBytes()), position = positionOf(*state, memory), zero = constant(i64, 0),
        next = add(position, *count), bytes = multiply(atMost(*count, rows), rowBytes),
        end = byteAddress(memory, multiply(add(next, rows), rowBytes));
  if (store.getFlushed() && llvm::failed(emitFlush(store, end, bytes)))
    return failure();
  auto choose = [&](Value condition, Value a, Value b) -> Value {
    return LLVM::SelectOp::create(builder, loc, condition, a, b);
  };
  Value someStay = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, *count, rows),
        isWithin = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, next, rows),
        beyond = subtract(next, rows);
  copyRows(byteAddress(memory, multiply(choose(someStay, position, zero), rowBytes)),
           byteAddress(end, subtract(zero, bytes)), constant(i64, 1), bytes, bytes);
  emitSecondCopies(*state, memory, choose(someStay, choose(isWithin, zero, beyond), zero));
  LLVM::StoreOp::create(builder, loc, choose(someStay, choose(isWithin, next, beyond), zero),
                        byteAddress(memory, state->positionOffset()));
  return success();
}

void HostEmitter::emitSecondCopies(const StateInterface &state, Value memory, Value rows) {
  Value bytes = multiply(rows, constant(i64, state.rowBytes()));
  copyRows(memory, byteAddress(memory, state.shape.front() * state.rowBytes()), constant(i64, 1), bytes, bytes);
}

void HostEmitter::emitSecondCopies(kd::StoreOp store) {
  const StateInterface *state = input.model.findState(store.getName().str());
  if (state->room == 0)
    return;
  Value memory = addressOfMemory(store, *state, store.getCopies());
  emitSecondCopies(*state, memory, positionOf(*state, memory));
}

LogicalResult HostEmitter::emitFlush(kd::StoreOp store, Value end, Value bytes) {
  if (input.target.memorySpace != KILN_MEMORY_HOST)
    return store.emitOpError("sets floats to 0 on CPUs only");
  const bool isHalf = cast<RankedTensorType>(store.getX().getType()).getElementType().isBF16();
  auto function = declare(isHalf ? "kiln_flush_bf16" : "kiln_flush_f32", LLVM::LLVMVoidType::get(builder.getContext()),
                          {pointer, i64});
  LLVM::CallOp::create(builder, loc, function, ValueRange{byteAddress(end, subtract(constant(i64, 0), bytes)), bytes});
  return success();
}

/// If the value is the end of a stream that begins with the state itself, only the rows after the state's are fresh.
FailureOr<Value> HostEmitter::freshBytesOf(Value value) {
  FailureOr<Value> all = bytesOf(cast<RankedTensorType>(value.getType()));
  auto slice = kd::getUnshaped(value).getDefiningOp<kd::SliceOp>();
  auto stream =
      slice && slice.getAtEnd() ? kd::getUnshaped(slice.getX()).getDefiningOp<kd::ConcatOp>() : kd::ConcatOp();
  if (llvm::failed(all) || !stream || !kd::getUnshaped(stream.getInputs().front()).getDefiningOp<kd::StateOp>())
    return all;
  Value sum = constant(i64, 0);
  for (Value part : stream.getInputs().drop_front()) {
    FailureOr<Value> bytes = bytesOf(cast<RankedTensorType>(part.getType()));
    if (llvm::failed(bytes))
      return failure();
    sum = LLVM::AddOp::create(builder, loc, sum, *bytes);
  }
  return atMost(sum, *all);
}

LogicalResult HostEmitter::emitStore(kd::StoreOp store) {
  if (input.plan.homeOf(store.getX()) == store.getOperation()) {
    emitSecondCopies(store);
    return success();
  }
  if (kd::SlideOp slide = kd::getSlide(store))
    return emitAdvance(store, slide);
  FailureOr<Value> source = addressOf(store.getX()), bytes = bytesOf(cast<RankedTensorType>(store.getX().getType()));
  if (llvm::failed(source) || llvm::failed(bytes))
    return failure();
  Value target = addressOfState(store);
  copyRows(target, *source, constant(i64, 1), *bytes, *bytes);
  if (store.getFlushed()) {
    FailureOr<Value> fresh = freshBytesOf(store.getX());
    if (llvm::failed(fresh) || llvm::failed(emitFlush(store, byteAddress(target, *bytes), *fresh)))
      return failure();
  }
  emitSecondCopies(store);
  return success();
}

LogicalResult HostEmitter::emitAssign(kd::AssignOp assign) {
  if (input.plan.homeOf(assign.getX()) == assign.getOperation())
    return success();
  FailureOr<Value> source = addressOf(assign.getX()), target = addressOf(assign.getParameter()),
                   bytes = bytesOf(cast<RankedTensorType>(assign.getX().getType()));
  if (llvm::failed(source) || llvm::failed(target) || llvm::failed(bytes))
    return failure();
  copyRows(*target, *source, constant(i64, 1), *bytes, *bytes);
  return success();
}

/// Returns the address of a slice's rows, which begin some rows after its operand's.
FailureOr<Value> HostEmitter::addressOfRows(kd::SliceOp slice) {
  const auto axis = static_cast<size_t>(slice.getAxis());
  auto type = cast<RankedTensorType>(slice.getType());
  SmallVector<AffineExpr> skipped = kd::getExtents(type);
  skipped.erase(skipped.begin(), skipped.begin() + axis);
  skipped.front() = slice.getAtEnd()
                        ? kd::getExtents(cast<RankedTensorType>(slice.getX().getType()))[axis] - skipped.front()
                        : getAffineConstantExpr(slice.getStart(), slice.getContext());
  FailureOr<Value> source = addressOf(slice.getX()), offset = bytesOf(skipped, type.getElementType());
  if (llvm::failed(source) || llvm::failed(offset))
    return failure();
  return byteAddress(*source, *offset);
}

LogicalResult HostEmitter::emitConcat(kd::ConcatOp concat) {
  FailureOr<Value> target = addressOf(concat.getResult());
  if (llvm::failed(target))
    return failure();
  for (Value part : concat.getInputs()) {
    FailureOr<Value> source = addressOf(part), bytes = bytesOf(cast<RankedTensorType>(part.getType()));
    if (llvm::failed(source) || llvm::failed(bytes))
      return failure();
    copyRows(*target, *source, constant(i64, 1), *bytes, *bytes);
    target = byteAddress(*target, *bytes);
  }
  return success();
}

/// A float that is not finite has an exponent of all ones.
LogicalResult HostEmitter::emitRequireFinite(kd::RequireFiniteOp required) {
  if (input.target.memorySpace != KILN_MEMORY_HOST)
    return required.emitOpError("has host code for CPUs only");
  FailureOr<Value> address = addressOf(required.getX());
  if (llvm::failed(address))
    return failure();
  constexpr int64_t exponent = 0x7F800000;
  Value bits = LLVM::LoadOp::create(builder, loc, i32, *address);
  Value own = LLVM::AndOp::create(builder, loc, bits, constant(i32, exponent));
  Value isFinite = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, own, constant(i32, exponent));
  continueIf(isFinite, constant(i32, KILN_NOT_FINITE));
  return success();
}

/// The slices of a loop are stored one after another. With sequences of different lengths, a slice begins after the
/// rows of the sequences before it. A view may have several elements per row, so its dimensions are evaluated for one
/// row and multiplied by the number of rows before.
FailureOr<Value> HostEmitter::addressOfStep(kd::LoopStep step, RankedTensorType slice) {
  SmallVector<AffineExpr> extents = kd::getExtents(slice);
  Value before = steps.lookup(step.loop);
  if (auto batched = dyn_cast<kd::EachSequenceOp>(step.loop.getOperation());
      batched && !llvm::all_of(extents, llvm::IsaPred<AffineConstantExpr>)) {
    before = rowsBefore;
    MLIRContext *context = slice.getContext();
    AffineExpr rows = getAffineSymbolExpr(batched.getBatchSymbols().own, context);
    for (AffineExpr &extent : extents)
      extent = extent.replace(rows, getAffineConstantExpr(1, context));
  }
  if (const int64_t kept = kd::getKeptSlices(step.whole))
    before = LLVM::URemOp::create(builder, loc, before, constant(i64, kept));
  FailureOr<Value> whole = addressOf(step.whole), bytes = bytesOf(extents, slice.getElementType());
  if (llvm::failed(whole) || llvm::failed(bytes))
    return failure();
  return byteAddress(*whole, multiply(before, *bytes));
}

/// After this call, the extents and states are those of the sequence.
void HostEmitter::enterSequence(kd::EachSequenceOp loop, Value index, Value rows) {
  Value table = loadOfFrame(abi::frame::sequences);
  const Type pointers = LLVM::LLVMStructType::getLiteral(builder.getContext(), {pointer, pointer}); // kiln_sequence_t
  sequence = LLVM::GEPOp::create(builder, loc, pointer, pointers, table, ArrayRef<LLVM::GEPArg>{index});
  rowsBefore = rows;
  steps[loop] = index;
  Value extents = loadElement(pointer, sequence, 1);
  unsigned next = 0;
  for (auto [i, symbol] : llvm::enumerate(input.model.symbols)) {
    if (!llvm::is_contained(input.entry.ownSymbols, symbol))
      continue;
    setSymbol(i, loadElement(i64, extents, next++));
  }
}

void HostEmitter::leaveSequence(ArrayRef<Value> symbolsOutside) {
  sequence = rowsBefore = {};
  for (auto [i, value] : llvm::enumerate(symbolsOutside))
    setSymbol(i, value);
}

LogicalResult HostEmitter::emitCounted(Value count,
                                       llvm::function_ref<FailureOr<Value>(Value index, Value value)> emitOne,
                                       Value *ended) {
  Value zero = constant(i64, 0), one = constant(i64, 1);
  Block *before = builder.getInsertionBlock();
  Block *header = builder.createBlock(&function.getBody(), function.getBody().end(), {i64, i64}, {loc, loc});
  Block *body = builder.createBlock(&function.getBody(), function.getBody().end());
  Block *after = builder.createBlock(&function.getBody(), function.getBody().end());
  builder.setInsertionPointToEnd(before);
  LLVM::BrOp::create(builder, loc, ValueRange{zero, zero}, header);
  builder.setInsertionPointToStart(header);
  Value index = header->getArgument(0);
  Value isInside = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, index, count);
  LLVM::CondBrOp::create(builder, loc, isInside, body, ValueRange(), after, ValueRange());
  builder.setInsertionPointToStart(body);
  FailureOr<Value> next = emitOne(index, header->getArgument(1));
  if (llvm::failed(next))
    return failure();
  const SmallVector<Value> carried{add(index, one), *next};
  if (ended && *ended)
    LLVM::CondBrOp::create(builder, loc, *ended, after, ValueRange(), header, carried);
  else
    LLVM::BrOp::create(builder, loc, carried, header);
  builder.setInsertionPointToStart(after);
  return success();
}

LogicalResult HostEmitter::emitIf(Value condition, llvm::function_ref<LogicalResult()> emitThen) {
  Block *before = builder.getInsertionBlock();
  Block *then = builder.createBlock(&function.getBody(), function.getBody().end());
  Block *after = builder.createBlock(&function.getBody(), function.getBody().end());
  builder.setInsertionPointToEnd(before);
  LLVM::CondBrOp::create(builder, loc, condition, then, ValueRange(), after, ValueRange());
  builder.setInsertionPointToStart(then);
  if (llvm::failed(emitThen()))
    return failure();
  LLVM::BrOp::create(builder, loc, ValueRange(), after);
  builder.setInsertionPointToStart(after);
  return success();
}

LogicalResult HostEmitter::emitIteration(kd::LoopInterface loop, Value index, Value count) {
  auto scan = dyn_cast<kd::ScanOp>(loop.getOperation());
  steps[loop] = scan && scan.getReverse() ? subtract(subtract(count, constant(i64, 1)), index) : index;
  if (loop.isOverLayers()) {
    Value outer = layerAt(loop);
    layers[loop] = outer ? add(multiply(outer, count), steps[loop]) : steps[loop];
  } else {
    storeOrder(LLVM::AndOp::create(builder, loc, index, constant(i64, 1)));
  }
  return emitBlock(loop->getRegion(0).front());
}

/// The sends of the iteration before must complete before that iteration's memory is overwritten.
void HostEmitter::waitForSent(kd::LoopInterface loop) {
  if (!loop.isOverLayers() && !loop->getRegion(0).getOps<kd::SendOp>().empty())
    emitFinish(kd::Group::Stages);
}

/// Emits iteration k of the first loop, if it has one, and then iteration k - lead of the second loop.
LogicalResult HostEmitter::emitTogether(kd::ScanOp ahead) {
  kd::ScanOp follower = kd::getFollower(ahead);
  FailureOr<Value> count = evaluate(ahead.getTripCount(), symbols);
  if (!follower || llvm::failed(count))
    return failure();
  Value lead = subtract(constant(i64, input.model.parallel->stages - 1), stage());
  auto emitOf = [&](kd::ScanOp loop, Value index) {
    Value isThere = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, index, *count);
    return emitIf(isThere, [&] { return emitIteration(loop, index, *count); });
  };
  LogicalResult result = emitCounted(add(*count, lead), [&](Value index, Value) -> FailureOr<Value> {
    waitForSent(ahead);
    if (llvm::failed(emitOf(ahead, index)) || llvm::failed(emitOf(follower, subtract(index, lead))))
      return failure();
    return constant(i64, 0);
  });
  storeOrder(constant(i64, 0));
  return result;
}

/// On a CPU the kernels of an iteration are done when it ends, so that the host reads what they stored.
FailureOr<Value> HostEmitter::emitEnd(kd::ScanOp scan, Value index, Value count) {
  FailureOr<Value> flag = addressOf(scan.getLast().front());
  if (llvm::failed(flag))
    return failure();
  const Type byte = builder.getI8Type();
  Value isEnded = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne,
                                       LLVM::LoadOp::create(builder, loc, byte, *flag), constant(byte, 0));
  Value done = add(index, constant(i64, 1));
  LogicalResult result = emitIf(isEnded, [&] {
    for (Value stacked : scan.getStacked()) {
      auto type = cast<RankedTensorType>(stacked.getType());
      const SmallVector<AffineExpr> extents = kd::getExtents(type);
      FailureOr<Value> whole = addressOf(stacked),
                       slice = bytesOf(ArrayRef(extents).drop_front(), type.getElementType());
      if (llvm::failed(whole) || llvm::failed(slice))
        return failure();
      LLVM::MemsetOp::create(builder, loc, byteAddress(*whole, multiply(done, *slice)), constant(byte, 0),
                             multiply(subtract(count, done), *slice), /*isVolatile=*/false);
    }
    return success();
  });
  return llvm::failed(result) ? FailureOr<Value>() : isEnded;
}

LogicalResult HostEmitter::emitLoop(kd::LoopInterface loop) {
  auto scan = dyn_cast<kd::ScanOp>(loop.getOperation());
  if (scan && scan.getAhead() > 0)
    return emitTogether(scan);
  if (scan && kd::isFollower(scan))
    return success(); // emitted together with the loop that it follows
  FailureOr<Value> count = evaluate(loop.getTripCount(), symbols);
  if (llvm::failed(count))
    return failure();
  auto batched = dyn_cast<kd::EachSequenceOp>(loop.getOperation());
  const SmallVector<Value> symbolsOutside = symbols;
  const bool endsEarly = scan && scan.getUntil() && input.target.memorySpace == KILN_MEMORY_HOST;
  Value ended;
  // The carried value is the number of rows of the sequences before.
  LogicalResult result = emitCounted(
      *count,
      [&](Value index, Value rows) -> FailureOr<Value> {
        waitForSent(loop);
        if (!batched) {
          if (llvm::failed(emitIteration(loop, index, *count)))
            return failure();
          FailureOr<Value> end = endsEarly ? emitEnd(scan, index, *count) : FailureOr<Value>(Value());
          if (llvm::failed(end))
            return failure();
          ended = *end;
          return rows;
        }
        enterSequence(batched, index, rows);
        if (llvm::failed(emitBlock(loop->getRegion(0).front())))
          return failure();
        const int64_t own = batched.getBatchSymbols().own;
        return own >= 0 ? add(rowsBefore, symbols[own]) : constant(i64, 0);
      },
      &ended);
  if (llvm::failed(result))
    return failure();
  if (batched)
    leaveSequence(symbolsOutside);
  else if (!loop.isOverLayers())
    storeOrder(constant(i64, 0));
  return success();
}

} // namespace kiln
