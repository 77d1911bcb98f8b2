// SPDX-License-Identifier: Apache-2.0
//
// Emits calls of functions of the run time that read tensors by index: sums of rows and sorted positions.
#include "compiler/hostcode/HostEmitter.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

static uint32_t elementOf(Value tensor) {
  return static_cast<uint32_t>(*kd::toElementType(cast<RankedTensorType>(tensor.getType()).getElementType()));
}

/// `tensors`: the result, then the operands in the order of the function. `numbers` follow them.
LogicalResult HostEmitter::emitIndexed(Operation *op, StringRef name, ArrayRef<Value> tensors,
                                       ArrayRef<AffineExpr> extents, ArrayRef<uint32_t> numbers) {
  if (input.target.memorySpace != KILN_MEMORY_HOST)
    return op->emitOpError("has host code for CPUs only");
  SmallVector<Value> arguments{loadOfFrame(abi::frame::worker)};
  for (Value tensor : tensors) {
    FailureOr<Value> address = addressOf(tensor);
    if (llvm::failed(address))
      return failure();
    arguments.push_back(*address);
  }
  for (AffineExpr extent : extents) {
    FailureOr<Value> value = evaluate(extent, symbols);
    if (llvm::failed(value))
      return failure();
    arguments.push_back(*value);
  }
  for (uint32_t number : numbers)
    arguments.push_back(constant(i32, number));
  FailureOr<Value> bytes = bytesOf(cast<RankedTensorType>(tensors.front().getType()));
  if (llvm::failed(bytes))
    return failure();
  StringRef shown = op->getName().stripDialect();
  emitIfTraced([&](Value tracing) { emitTraceBegin(tracing, addressOfText(shown), op, constant(i64, 0), *bytes); });
  auto function = declare(name, i32, llvm::to_vector(TypeRange(ValueRange(arguments))));
  Value result = LLVM::CallOp::create(builder, loc, function, arguments).getResult();
  emitTraceEnd();
  continueIfOk(result);
  return success();
}

LogicalResult HostEmitter::emitScatterAdd(kd::ScatterAddOp scatter) {
  const SmallVector<AffineExpr> table = kd::getExtents(scatter.getType()),
                                rows = kd::getExtents(cast<RankedTensorType>(scatter.getRows().getType()));
  return emitIndexed(scatter, "kiln_scatter_add", {scatter.getResult(), scatter.getRows(), scatter.getIndices()},
                     {table[0], rows[0], table[1]}, {});
}

LogicalResult HostEmitter::emitIndexAdd(kd::IndexAddOp sum) {
  const SmallVector<AffineExpr> table = kd::getExtents(cast<RankedTensorType>(sum.getType())),
                                rows = kd::getExtents(cast<RankedTensorType>(sum.getRows().getType()));
  return emitIndexed(sum, "kiln_index_add", {sum.getResult(), sum.getX(), sum.getRows(), sum.getIndices()},
                     {table[0], rows[0], table[1]}, {elementOf(sum.getX())});
}

LogicalResult HostEmitter::emitArgsort(kd::ArgsortOp sort) {
  const SmallVector<AffineExpr> extents = kd::getExtents(cast<RankedTensorType>(sort.getX().getType())),
                                places = kd::getExtents(cast<RankedTensorType>(sort.getType()));
  const auto axis = static_cast<size_t>(sort.getAxis());
  MLIRContext *context = sort.getContext();
  const AffineExpr outer = kd::getProduct(ArrayRef(extents).take_front(axis), context),
                   inner = kd::getProduct(ArrayRef(extents).drop_front(axis + 1), context);
  return emitIndexed(sort, "kiln_argsort", {sort.getResult(), sort.getX()}, {outer, extents[axis], inner, places[axis]},
                     {elementOf(sort.getX()), sort.getDescending()});
}

} // namespace kiln
