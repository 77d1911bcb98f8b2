// SPDX-License-Identifier: Apache-2.0
//
// Emits the communication of processes that call an entry together, as calls of the runtime's collective.c.
#include "compiler/dialect/Check.h"
#include "compiler/hostcode/HostEmitter.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

void HostEmitter::emitFinish(kd::Group group) {
  auto finish = declare("kiln_finish_collectives", i32, {pointer, i32});
  continueIfOk(
      LLVM::CallOp::create(builder, loc, finish, ValueRange{frameArgument, constant(i32, static_cast<int64_t>(group))})
          .getResult());
}

/// Emits a wait that a trace attributes to `op`. The runtime traces the operation that is waited for.
void HostEmitter::emitWait(Operation *op, kd::Group group) {
  emitIfTraced(
      [&](Value tracing) { emitTraceBegin(tracing, addressOfText("finish"), op, constant(i64, 0), constant(i64, 0)); });
  emitFinish(group);
  emitTraceEnd();
}

/// Passes the layer and its number for the trace that the call may have.
LogicalResult HostEmitter::emitBegin(kd::BeginReduceOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  const SmallVector<AffineExpr> extents = kd::getExtents(type); // a shard has all of them but the first
  FailureOr<Value> address = addressOf(op.getX()),
                   elements = evaluate(
                       kd::getProduct(ArrayRef(extents).drop_front(op.getScattered()), type.getContext()), symbols);
  if (llvm::failed(address) || llvm::failed(elements))
    return failure();
  const uint32_t kind = op.getScattered() ? KILN_REDUCE_SCATTER : KILN_ALL_REDUCE;
  auto begin = declare("kiln_begin_sum", i32, {pointer, i32, i32, pointer, i64, i32, pointer, i64});
  const auto element = static_cast<int64_t>(*kd::toElementType(type.getElementType()));
  continueIfOk(
      LLVM::CallOp::create(builder, loc, begin,
                           ValueRange{frameArgument, constant(i32, static_cast<int64_t>(op.getOver())),
                                      constant(i32, kind), *address, *elements, constant(i32, element),
                                      addressOfText(written_name(kd::getScope(op.getLoc()).str())), tracedLayerAt(op)})
          .getResult());
  return success();
}

LogicalResult HostEmitter::emitCollective(Operation *op, uint32_t kind, kd::Group group) {
  Value smaller = kind == KILN_REDUCE_SCATTER ? op->getResult(0) : op->getOperand(0);
  auto type = cast<RankedTensorType>(smaller.getType()); // type of one shard
  FailureOr<Value> from = addressOf(op->getOperand(0)), to = addressOf(op->getResult(0)), bytes = bytesOf(type),
                   elements = evaluate(kd::getProduct(kd::getExtents(type), type.getContext()), symbols);
  if (llvm::failed(from) || llvm::failed(to) || llvm::failed(bytes) || llvm::failed(elements))
    return failure();
  emitIfTraced([&](Value tracing) {
    emitTraceBegin(tracing, addressOfText(op->getName().stripDialect()), op, constant(i64, 0), *bytes);
  });
  auto begin = declare("kiln_begin_collective", i32, {pointer, i32, i32, pointer, pointer, i64, i32});
  const auto element = static_cast<int64_t>(*kd::toElementType(type.getElementType()));
  continueIfOk(LLVM::CallOp::create(builder, loc, begin,
                                    ValueRange{frameArgument, constant(i32, static_cast<int64_t>(group)),
                                               constant(i32, kind), *from, *to, *elements, constant(i32, element)})
                   .getResult());
  emitFinish(group);
  emitTraceEnd();
  return success();
}

/// Starts the sends. The next wait of the stage completes them.
LogicalResult HostEmitter::emitSend(kd::SendOp send) {
  for (Value value : send.getValues())
    if (llvm::failed(emitMove(send, KILN_SEND, send.getWay(), value)))
      return failure();
  return success();
}

LogicalResult HostEmitter::emitReceive(kd::ReceiveOp receive) {
  Value bytes = constant(i64, 0);
  for (Value value : receive.getValues()) {
    FailureOr<Value> own = bytesOf(cast<RankedTensorType>(value.getType()));
    if (llvm::failed(own))
      return failure();
    bytes = add(bytes, *own);
  }
  emitIfTraced(
      [&](Value tracing) { emitTraceBegin(tracing, addressOfText("receive"), receive, constant(i64, 0), bytes); });
  for (Value value : receive.getValues())
    if (llvm::failed(emitMove(receive, KILN_RECEIVE, receive.getWay(), value)))
      return failure();
  emitFinish(kd::Group::Stages);
  emitTraceEnd();
  return success();
}

LogicalResult HostEmitter::emitMove(Operation *op, uint32_t kind, kd::Way way, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  FailureOr<Value> address = addressOf(value),
                   elements = evaluate(kd::getProduct(kd::getExtents(type), type.getContext()), symbols);
  if (llvm::failed(address) || llvm::failed(elements))
    return failure();
  auto begin = declare("kiln_begin_move", i32, {pointer, i32, i32, pointer, i64, i32, pointer, i64});
  const auto element = static_cast<int64_t>(*kd::toElementType(type.getElementType()));
  continueIfOk(
      LLVM::CallOp::create(builder, loc, begin,
                           ValueRange{frameArgument, constant(i32, kind), constant(i32, static_cast<int64_t>(way)),
                                      *address, *elements, constant(i32, element),
                                      addressOfText(written_name(kd::getScope(op->getLoc()).str())), tracedLayerAt(op)})
          .getResult());
  return success();
}

} // namespace kiln
