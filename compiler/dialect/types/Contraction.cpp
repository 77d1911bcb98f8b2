// SPDX-License-Identifier: Apache-2.0
//
// Result types of linear, of its quantised rows, of grouped_linear and of matmul.
#include "compiler/dialect/types/Infer.h"

namespace mlir::kiln {

KILN_INFER(LinearOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 1)
    return check.fail(rules::linear_c2, check.text(x));
  if (weight.getRank() != 2)
    return check.fail(rules::linear_c3, check.text(weight));
  SmallVector<AffineExpr> extents = getExtents(x), weights = getExtents(weight);
  if (op.getWeightOrder() == WeightOrder::InOut)
    std::swap(weights[0], weights[1]);
  if (extents.back() != weights[1])
    return check.fail(rules::linear_c1, check.text(extents.back()), check.text(weights[1]));
  RankedTensorType floats = op.getScales() ? tensorType(op.getScales()) : x;
  if (op.getScales() && (!x.getElementType().isInteger(8) || getExtents(floats) != ArrayRef(extents).drop_back()))
    return check.report("linear with scales: wrong input or scales; expected i8 and a scale for each row",
                        check.text({x, floats}));
  if (failed(check.sameElement(rules::linear_c5, {floats, weight})))
    return failure();
  if (op.getBias()) {
    RankedTensorType bias = tensorType(op.getBias());
    if (getExtents(bias) != ArrayRef(weights).take_front())
      return check.fail(rules::linear_c4, check.text(bias), check.text(ArrayRef(weights).take_front()));
    if (failed(check.sameElement(rules::linear_c5, {floats, bias})))
      return failure();
  }
  extents.back() = weights[0];
  types.push_back(resultType(op, extents, floats.getElementType()));
  return success();
}

KILN_INFER(GroupedLinearOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight()), ends = tensorType(op.getEnds());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() != 2)
    return check.fail(rules::grouped_linear_c1, check.text(x));
  if (weight.getRank() != 2 || !weight.hasStaticShape())
    return check.fail(rules::grouped_linear_c2, check.text(weight));
  if (ends.getRank() != 1 || !ends.hasStaticShape())
    return check.fail(rules::grouped_linear_c3, check.text(ends));
  const int64_t groups = ends.getDimSize(0), rows = weight.getDimSize(0);
  if (rows % groups != 0)
    return check.fail(rules::grouped_linear_c4, Twine(rows) + " rows for " + Twine(groups));
  int64_t in = weight.getDimSize(1), out = rows / groups;
  if (op.getWeightOrder() == WeightOrder::InOut)
    std::swap(in, out);
  SmallVector<AffineExpr> extents = getExtents(x);
  if (AffineExpr width = getAffineConstantExpr(in, context); extents.back() != width)
    return check.fail(rules::grouped_linear_c5, check.text(extents.back()), check.text(width));
  if (failed(check.sameElement(rules::grouped_linear_c7, {x, weight})))
    return failure();
  if (op.getBias()) {
    RankedTensorType bias = tensorType(op.getBias());
    const AffineExpr expected = getAffineConstantExpr(groups * out, context);
    if (getExtents(bias) != ArrayRef(expected))
      return check.fail(rules::grouped_linear_c6, check.text(bias), check.text(ArrayRef(expected)));
    if (failed(check.sameElement(rules::grouped_linear_c7, {x, bias})))
      return failure();
  }
  extents.back() = getAffineConstantExpr(out, context);
  types.push_back(resultType(op, extents, x.getElementType()));
  return success();
}

KILN_INFER(RowScalesOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 1)
    return check.report("row_scales: operand has no rows; expected rank 1 or more", check.text(x));
  types.push_back(resultType(op, ArrayRef(getExtents(x)).drop_back(), x.getElementType()));
  return success();
}

KILN_INFER(QuantizeRowsOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), scales = tensorType(op.getScales());
  if (failed(checkOperands(op, check)))
    return failure();
  if (x.getRank() < 1 || getExtents(scales) != ArrayRef(getExtents(x)).drop_back())
    return check.report("quantize_rows: wrong shape of the scales; expected one for each row", check.text({x, scales}));
  types.push_back(resultType(op, getExtents(x), IntegerType::get(context, 8)));
  return success();
}

KILN_INFER(MatmulOp) {
  Check check(location, op.getOperands());
  RankedTensorType a = tensorType(op.getA()), b = tensorType(op.getB());
  if (failed(checkOperands(op, check)))
    return failure();
  if (a.getRank() < 2 || b.getRank() < 2)
    return check.fail(rules::matmul_c2, check.text({a, b}));
  SmallVector<AffineExpr> left = getExtents(a), right = getExtents(b);
  if (op.getTransposeB())
    std::swap(right[right.size() - 1], right[right.size() - 2]);
  AffineExpr columns = right.pop_back_val(), inner = right.pop_back_val();
  AffineExpr leftInner = left.pop_back_val(), rows = left.pop_back_val();
  if (leftInner != inner)
    return check.fail(rules::matmul_c1, check.text(leftInner), check.text(inner));
  auto extents = check.broadcast(rules::matmul_c3, left, right);
  if (failed(extents) || failed(check.sameElement(rules::matmul_c4, {a, b})))
    return failure();
  extents->append({rows, columns});
  types.push_back(resultType(op, *extents, a.getElementType()));
  return success();
}

} // namespace mlir::kiln
