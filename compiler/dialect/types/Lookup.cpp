// SPDX-License-Identifier: Apache-2.0
//
// Result types of ops that look up rows and positions.
#include "compiler/dialect/types/Infer.h"

namespace mlir::kiln {

KILN_INFER(EmbeddingOp) {
  Check check(location, op.getOperands());
  RankedTensorType indices = tensorType(op.getIndices()), table = tensorType(op.getTable());
  if (failed(checkOperands(op, check)))
    return failure();
  if (table.getRank() != 2)
    return check.fail(rules::embedding_c2, check.text(table));
  if (op.getIndices().getDefiningOp<PositionsOp>() && indices.getRank() == 1) {
    AffineExpr rows = getExtents(table).front(), positions = getExtents(indices).front();
    if (auto spare = check.knownBounds(rows - positions); spare && spare->min < 0 && !check.atLeast(rows, positions))
      return check.fail(rules::embedding_c3, check.text(rows), check.text(positions));
  }
  SmallVector<AffineExpr> extents = getExtents(indices);
  extents.push_back(getExtents(table).back());
  types.push_back(resultType(op, extents, table.getElementType()));
  return success();
}

KILN_INFER(PositionsOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)) || failed(check.axis(rules::positions_c1, op.getAxis(), x)))
    return failure();
  types.push_back(resultType(op, getExtents(x)[op.getAxis()], IntegerType::get(context, 32)));
  return success();
}

KILN_INFER(GatherOp) {
  Check check(location, op.getOperands());
  RankedTensorType table = tensorType(op.getTable());
  if (failed(checkOperands(op, check)) || failed(check.axis(rules::gather_c2, op.getAxis(), table)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(table), indices = getExtents(tensorType(op.getIndices()));
  extents.erase(extents.begin() + op.getAxis());
  extents.insert(extents.begin() + op.getAxis(), indices.begin(), indices.end());
  types.push_back(resultType(op, extents, table.getElementType()));
  return success();
}

} // namespace mlir::kiln
