// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/HostEmitter.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

Value HostEmitter::layerAt(Operation *op) {
  auto loop = op->getParentOfType<kd::LoopInterface>();
  while (loop && !loop.isOverLayers())
    loop = loop->getParentOfType<kd::LoopInterface>();
  return loop ? layers.lookup(loop) : Value();
}

Value HostEmitter::tracedLayerAt(Operation *op) {
  Value layer = layerAt(op);
  if (!layer)
    return constant(i64, -1);
  auto stack = op->getParentOfType<kd::RepeatOp>();
  if (input.model.stages == 1 || !stack)
    return layer;
  Value stage = LLVM::ZExtOp::create(
      builder, loc, i64, loadElement(i32, loadOfFrame(abi::frame::together), static_cast<int64_t>(kd::Group::Stages)));
  return add(layer, multiply(stage, constant(i64, static_cast<int64_t>(stack.getCount()))));
}

Value HostEmitter::addressOfState(Operation *op, StringRef name, int64_t copies) {
  const StateInterface *state = input.model.findState(name.str());
  Value states = sequence ? loadElement(pointer, sequence, 0) : loadOfFrame(abi::frame::arena);
  Value address = byteAddress(states, state->offset), layer = layerAt(op);
  return copies > 1 && layer ? byteAddress(address, multiply(layer, constant(i64, state->stride))) : address;
}

void HostEmitter::copyRows(Value target, Value source, Value rows, Value rowBytes, Value sourceStride) {
  auto function = declare(input.target.copyRows, LLVM::LLVMVoidType::get(builder.getContext()),
                          {pointer, pointer, pointer, i64, i64, i64});
  LLVM::CallOp::create(builder, loc, function,
                       ValueRange{loadOfFrame(abi::frame::worker), target, source, rows, rowBytes, sourceStride});
}

LogicalResult HostEmitter::emitAppend(kd::AppendOp append) {
  auto rows = cast<RankedTensorType>(append.getX().getType()), whole = cast<RankedTensorType>(append.getType());
  SmallVector<AffineExpr> from = kd::getExtents(rows), to = kd::getExtents(whole);
  AffineExpr one = getAffineConstantExpr(1, rows.getContext());
  // The row of the state that is written first, in bytes.
  SmallVector<AffineExpr> before(to);
  before.front() = to.front() - from.front();
  FailureOr<Value> source = addressOf(append.getX()), offset = bytesOf(before, rows.getElementType());
  if (llvm::failed(source) || llvm::failed(offset))
    return failure();
  Value target = byteAddress(addressOfState(append), *offset);
  // What is copied side by side: all of it, or of each row of the operand some columns.
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
  copyRows(target, byteAddress(*source, *skipped), *count, *bytes, *stride);
  return success();
}

LogicalResult HostEmitter::emitStore(kd::StoreOp store) {
  if (input.plan.homeOf(store.getX()) == store.getOperation())
    return success();
  FailureOr<Value> source = addressOf(store.getX()), bytes = bytesOf(cast<RankedTensorType>(store.getX().getType()));
  if (llvm::failed(source) || llvm::failed(bytes))
    return failure();
  copyRows(addressOfState(store), *source, constant(i64, 1), *bytes, *bytes);
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

/// The exponent of what is not finite is all ones.
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

/// Slices lie one behind another. Those of sequences that have different numbers of rows lie behind the rows before;
/// a view of one has so many of some extent for each of them.
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
  FailureOr<Value> whole = addressOf(step.whole), bytes = bytesOf(extents, slice.getElementType());
  if (llvm::failed(whole) || llvm::failed(bytes))
    return failure();
  return byteAddress(*whole, multiply(before, *bytes));
}

/// From here on extents and states are the sequence's.
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

LogicalResult HostEmitter::emitLoop(kd::LoopInterface loop) {
  FailureOr<Value> count = evaluate(loop.getTripCount(), symbols);
  if (llvm::failed(count))
    return failure();
  auto batched = dyn_cast<kd::EachSequenceOp>(loop.getOperation());
  Value zero = constant(i64, 0), one = constant(i64, 1);
  Block *before = builder.getInsertionBlock();
  // The number of the iteration, and of the rows of the sequences before.
  Block *header = builder.createBlock(&function.getBody(), function.getBody().end(), {i64, i64}, {loc, loc});
  Block *body = builder.createBlock(&function.getBody(), function.getBody().end());
  Block *after = builder.createBlock(&function.getBody(), function.getBody().end());
  builder.setInsertionPointToEnd(before);
  LLVM::BrOp::create(builder, loc, ValueRange{zero, zero}, header);
  builder.setInsertionPointToStart(header);
  Value index = header->getArgument(0);
  Value isInside = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, index, *count);
  LLVM::CondBrOp::create(builder, loc, isInside, body, ValueRange(), after, ValueRange());

  builder.setInsertionPointToStart(body);
  const SmallVector<Value> symbolsOutside = symbols;
  if (batched) {
    enterSequence(batched, index, header->getArgument(1));
  } else {
    auto scan = dyn_cast<kd::ScanOp>(loop.getOperation());
    steps[loop] = scan && scan.getReverse() ? subtract(subtract(*count, one), index) : index;
  }
  if (loop.isOverLayers()) {
    Value outer = layerAt(loop);
    layers[loop] = outer ? add(multiply(outer, *count), steps[loop]) : steps[loop];
  } else if (!batched) {
    storeOrder(LLVM::AndOp::create(builder, loc, index, one));
  }
  if (llvm::failed(emitBlock(loop->getRegion(0).front())))
    return failure();
  const int64_t own = batched ? batched.getBatchSymbols().own : -1;
  Value rows = own >= 0 ? add(rowsBefore, symbols[own]) : zero;
  LLVM::BrOp::create(builder, loc, ValueRange{add(index, one), rows}, header);
  builder.setInsertionPointToStart(after);
  if (batched)
    leaveSequence(symbolsOutside);
  if (!batched && !loop.isOverLayers())
    storeOrder(zero);
  return success();
}

} // namespace kiln
