// SPDX-License-Identifier: Apache-2.0
//
// Calls of a kernel for each group of rows (kiln.call with `ends`): a loop over the groups, which passes pointers to
// the group's rows and to its parts of weights. Nothing is copied, and a group without rows costs a comparison.
#include "compiler/hostcode/HostEmitter.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/StoredParts.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

LogicalResult HostEmitter::emitGroups(kd::CallOp call) {
  FailureOr<Value> ends = addressOf(call.getEnds());
  if (llvm::failed(ends))
    return failure();
  const Value rows = indices.lookup(call.getExtents().front());
  const int64_t groups = call.getNumGroups();
  auto choose = [&](LLVM::ICmpPredicate predicate, Value a, Value b) -> Value {
    return LLVM::SelectOp::create(builder, loc, LLVM::ICmpOp::create(builder, loc, predicate, a, b), a, b);
  };
  // The carried value is the first row of the group. Whatever the ends are, the groups partition the rows.
  return emitCounted(constant(i64, groups), [&](Value group, Value first) -> FailureOr<Value> {
    Value address = byteAddress(*ends, multiply(group, constant(i64, 4)));
    Value stated = LLVM::SExtOp::create(builder, loc, i64, LLVM::LoadOp::create(builder, loc, i32, address));
    Value isLast = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, group, constant(i64, groups - 1));
    Value end = choose(LLVM::ICmpPredicate::slt, LLVM::SelectOp::create(builder, loc, isLast, rows, stated), rows);
    end = choose(LLVM::ICmpPredicate::sgt, end, first);
    Value hasRows = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, end, first);
    if (llvm::failed(emitIf(hasRows, [&] { return emitGroup(call, group, first, subtract(end, first)); })))
      return failure();
    return end;
  });
}

LogicalResult HostEmitter::emitGroup(kd::CallOp call, Value group, Value first, Value count) {
  SmallVector<KernelArgument> arguments;
  arguments.push_back({count, Type(), {}});
  for (auto [number, argument] : llvm::enumerate(call.getArguments())) {
    LogicalResult added = call.isPerGroup(static_cast<int64_t>(number))
                              ? addPart(argument, call.getNumGroups(), group, arguments)
                              : addRows(argument, first, count, arguments);
    if (llvm::failed(added))
      return failure();
  }
  for (Value result : call.getResults())
    if (llvm::failed(addRows(result, first, count, arguments)))
      return failure();
  return emitKernel(call, count, arguments);
}

/// Each array of a weight is divided equally among the groups, since no tile has outputs of two groups.
LogicalResult HostEmitter::addPart(Value tensor, int64_t groups, Value group,
                                   SmallVectorImpl<KernelArgument> &arguments) {
  FailureOr<Value> address = addressOf(tensor);
  if (llvm::failed(address))
    return failure();
  const auto type = cast<RankedTensorType>(tensor.getType());
  const auto wholes = kd::getStoredParts(type), parts = kd::getStoredParts(kd::CallOp::getPart(type, groups));
  for (auto [whole, part] : llvm::zip_equal(wholes, parts)) {
    const int64_t elements = part.type.getNumElements();
    if (elements * groups != whole.type.getNumElements())
      return entry.emitError("a tile of a weight has outputs of several groups: ") << type;
    const int64_t stride = kd::storedBytes(part.type.getElementType(), elements);
    KernelArgument argument{byteAddress(byteAddress(*address, whole.offset), multiply(group, constant(i64, stride))),
                            part.type.getElementType(),
                            {}};
    for (int64_t extent : part.type.getShape())
      argument.extents.push_back(constant(i64, extent));
    arguments.push_back(std::move(argument));
  }
  return success();
}

LogicalResult HostEmitter::addRows(Value tensor, Value first, Value count, SmallVectorImpl<KernelArgument> &arguments) {
  FailureOr<Value> address = addressOf(tensor);
  if (llvm::failed(address))
    return failure();
  const auto type = cast<RankedTensorType>(tensor.getType());
  const ArrayRef<int64_t> row = type.getShape().drop_front();
  const int64_t bytes = kd::storedBytes(type.getElementType(), ShapedType::getNumElements(row));
  KernelArgument argument{byteAddress(*address, multiply(first, constant(i64, bytes))), type.getElementType(), {count}};
  for (int64_t extent : row)
    argument.extents.push_back(constant(i64, extent));
  arguments.push_back(std::move(argument));
  return success();
}

} // namespace kiln
