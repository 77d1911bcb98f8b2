// SPDX-License-Identifier: Apache-2.0
//
// Result types of ops over operands that broadcast, and the check that an op has the types inferred for it.
#include "compiler/dialect/types/Broadcast.h"

#include "compiler/dialect/types/Infer.h"

namespace mlir::kiln {

LogicalResult inferBroadcast(std::optional<Location> location, ValueRange operands, Type element,
                             SmallVectorImpl<Type> &types) {
  Check check(location, operands);
  RankedTensorType lhs = tensorType(operands[0]), rhs = tensorType(operands[1]);
  if (failed(check.extents(operands.getTypes())) || failed(check.sameElement(rules::broadcast_c2, {lhs, rhs})))
    return failure();
  auto extents = check.broadcast(rules::broadcast_c1, getExtents(lhs), getExtents(rhs));
  if (failed(extents))
    return failure();
  types.push_back(
      getTensorType(*extents, element ? element : lhs.getElementType(), getNumSymbols(operands.getTypes())));
  return success();
}

/// Infers again and compares extents instead of types, since equal extents can be written differently.
LogicalResult verifyInferredTypes(Operation *op) {
  SmallVector<Type> types;
  if (failed(cast<InferTypeOpInterface>(op).inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                                             op->getDiscardableAttrDictionary(),
                                                             op->getPropertiesStorage(), op->getRegions(), types)))
    return failure();
  Check check(op);
  for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
    auto given = tensorType(result), expected = cast<RankedTensorType>(type);
    if (failed(check.extents(given)))
      return failure();
    if (given.getElementType() != expected.getElementType() || getExtents(given) != getExtents(expected))
      return check.report((op->getName().stripDialect() + ": result does not follow from the operands").str(),
                          check.text(given), check.text(expected));
  }
  return success();
}

KILN_INFER(WhereOp) {
  Check check(location, op.getOperands());
  RankedTensorType condition = tensorType(op.getCondition()), lhs = tensorType(op.getLhs()),
                   rhs = tensorType(op.getRhs());
  if (failed(checkOperands(op, check)) || failed(check.sameElement(rules::broadcast_c2, {lhs, rhs})))
    return failure();
  auto both = check.broadcast(rules::broadcast_c1, getExtents(lhs), getExtents(rhs));
  if (failed(both))
    return failure();
  auto extents = check.broadcast(rules::broadcast_c1, getExtents(condition), *both);
  if (failed(extents))
    return failure();
  types.push_back(resultType(op, *extents, lhs.getElementType()));
  return success();
}

} // namespace mlir::kiln
