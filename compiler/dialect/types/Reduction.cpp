// SPDX-License-Identifier: Apache-2.0
//
// Result types of reductions and norms.
#include "compiler/dialect/types/Infer.h"

namespace mlir::kiln {

namespace {

/// `element` is null for the operand's element type.
template <class Adaptor>
LogicalResult inferReduction(std::optional<Location> location, Adaptor op, Type element, SmallVectorImpl<Type> &types) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX());
  if (failed(checkOperands(op, check)) || failed(check.axis(rules::reduction_c1, op.getAxis(), x)))
    return failure();
  SmallVector<AffineExpr> extents = getExtents(x);
  extents.erase(extents.begin() + op.getAxis());
  types.push_back(resultType(op, extents, element ? element : x.getElementType()));
  return success();
}

} // namespace

KILN_INFER(MeanOp) { return inferReduction(location, op, {}, types); }
KILN_INFER(MaxOp) { return inferReduction(location, op, {}, types); }
KILN_INFER(SumOp) { return inferReduction(location, op, {}, types); }
KILN_INFER(ArgmaxOp) { return inferReduction(location, op, IntegerType::get(context, 32), types); }

KILN_INFER(LayerNormOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight()), bias = tensorType(op.getBias());
  if (failed(checkOperands(op, check)) || failed(check.sameElement(rules::layer_norm_c4, {x, weight, bias})))
    return failure();
  if (x.getRank() < 1 || getExtents(weight) != ArrayRef(getExtents(x)).take_back())
    return check.fail(rules::layer_norm_c1, check.text({x, weight}));
  if (getExtents(bias) != getExtents(weight))
    return check.fail(rules::layer_norm_c2, check.text({weight, bias}));
  if (!(op.getEpsilon().convertToDouble() > 0))
    return check.fail(rules::layer_norm_c3, std::to_string(op.getEpsilon().convertToDouble()));
  types.push_back(resultType(op, getExtents(x), x.getElementType()));
  return success();
}

KILN_INFER(RmsNormOp) {
  Check check(location, op.getOperands());
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight());
  if (failed(checkOperands(op, check)) || failed(check.sameElement(rules::rms_norm_c3, {x, weight})))
    return failure();
  if (x.getRank() < 1 || getExtents(weight) != ArrayRef(getExtents(x)).take_back())
    return check.fail(rules::rms_norm_c1, check.text({x, weight}));
  if (!(op.getEpsilon().convertToDouble() > 0))
    return check.fail(rules::rms_norm_c2, std::to_string(op.getEpsilon().convertToDouble()));
  types.push_back(resultType(op, getExtents(x), x.getElementType()));
  return success();
}

} // namespace mlir::kiln
