// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of norms and reductions; y is the result, dy its gradient.
#include "compiler/dialect/gradients/GradientBuilder.h"

namespace mlir::kiln {

KILN_GRADIENT(SumOp) {
  if (!isa<FloatType>(getType().getElementType()))
    return {Value()};
  return {b.expandTo(b.keepAxis(gradients[0], getX(), getAxis()), rankedType(getX()))};
}
KILN_GRADIENT(ArgmaxOp) { return {Value()}; }
/// An element contributes to the running sum at its position and to all later ones.
KILN_GRADIENT(CumsumOp) {
  if (!isa<FloatType>(getType().getElementType()))
    return {Value()};
  return {b.create<CumsumOp>(gradients[0], getAxis(), !getReverse())};
}
KILN_GRADIENT(MeanOp) {
  Value each = b.mul(gradients[0], b.reciprocalExtent(getX(), getAxis()));
  return {b.expandTo(b.keepAxis(each, getX(), getAxis()), rankedType(getX()))};
}
/// All largest elements share the gradient equally.
KILN_GRADIENT(MaxOp) {
  if (!isa<FloatType>(getType().getElementType()))
    return {Value()};
  const auto axis = static_cast<int64_t>(getAxis());
  Value isLargest = b.create<EqualOp>(getX(), b.keepAxis(getResult(), getX(), axis));
  Value count = b.sumKept(b.createAs<CastOp>(getX().getType(), isLargest), axis);
  Value part = b.div(b.keepAxis(gradients[0], getX(), axis), count);
  return {b.where(isLargest, part, b.number(getX(), 0))};
}

/// y (dy - sum(dy y))
KILN_GRADIENT(SoftmaxOp) {
  Value dy = gradients[0], y = getResult();
  return {b.mul(y, b.sub(dy, b.sumKept(b.mul(dy, y), getAxis())))};
}
/// dy - e^y sum(dy)
KILN_GRADIENT(LogSoftmaxOp) {
  Value dy = gradients[0];
  return {b.sub(dy, b.mul(b.create<ExpOp>(getResult()), b.sumKept(dy, getAxis())))};
}

/// Sums over all axes but the last.
static Value sumRows(GradientBuilder &b, Value x, Value like) { return b.sumTo(x, rankedType(like)); }

/// 1 / sqrt(variance + epsilon), for each row.
static Value inverseDeviation(GradientBuilder &b, Value variance, double epsilon) {
  return b.div(b.number(variance, 1), b.create<SqrtOp>(b.add(variance, b.number(variance, epsilon))));
}

/// With n the normalised x and g = dy weight: (g - mean(g) - n mean(g n)) / deviation.
KILN_GRADIENT(LayerNormOp) {
  const int64_t last = getType().getRank() - 1;
  Value x = getX(), dy = gradients[0];
  Value centred = b.sub(x, b.meanKept(x, last, /*shifted=*/true));
  Value inverse = inverseDeviation(b, b.meanKept(b.mul(centred, centred), last), getEpsilon().convertToDouble());
  Value n = b.mul(centred, inverse), g = b.mul(dy, getWeight());
  Value along = b.mul(n, b.meanKept(b.mul(g, n), last));
  return {b.mul(inverse, b.sub(b.sub(g, b.meanKept(g, last)), along)), sumRows(b, b.mul(dy, n), getWeight()),
          sumRows(b, dy, getBias())};
}

/// With n = x / deviation and g = dy weight: (g - n mean(g n)) / deviation.
KILN_GRADIENT(RmsNormOp) {
  const int64_t last = getType().getRank() - 1;
  Value x = getX(), dy = gradients[0];
  Value inverse = inverseDeviation(b, b.meanKept(b.mul(x, x), last), getEpsilon().convertToDouble());
  Value n = b.mul(x, inverse), g = b.mul(dy, getWeight());
  return {b.mul(inverse, b.sub(g, b.mul(n, b.meanKept(b.mul(g, n), last)))), sumRows(b, b.mul(dy, n), getWeight())};
}

} // namespace mlir::kiln
