// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of elementwise ops; y is the result, dy its gradient. At a kink, maximum and minimum give half of dy to
// both operands, and relu and abs give 0. At infinities, NaN and poles the results are those of PyTorch's autograd
// (tests/gradients/singular_test.cpp), where the order of operations is significant.
#include "compiler/dialect/gradients/GradientBuilder.h"

#include <numbers>

namespace mlir::kiln {

/// Returns the gradients of two operands that were broadcast.
static SmallVector<Value> toOperands(GradientBuilder &b, Value lhs, Value rhs, Value dl, Value dr) {
  return {b.sumTo(dl, rankedType(lhs)), b.sumTo(dr, rankedType(rhs))};
}

/// Gives the gradient to the operand that is the result; `isLeft` and `isRight` exclude the other operand.
static SmallVector<Value> toChosen(GradientBuilder &b, Value lhs, Value rhs, Value isLeft, Value isRight, Value dy) {
  Value zero = b.number(dy, 0), own = b.where(b.create<EqualOp>(lhs, rhs), b.scale(dy, 0.5), dy);
  return toOperands(b, lhs, rhs, b.where(isRight, zero, own), b.where(isLeft, zero, own));
}

KILN_GRADIENT(AddOp) { return toOperands(b, getLhs(), getRhs(), gradients[0], gradients[0]); }
KILN_GRADIENT(SubOp) {
  Value ofRhs = b.sumTo(gradients[0], rankedType(getRhs()));
  return {b.sumTo(gradients[0], rankedType(getLhs())), b.negate(ofRhs)};
}
KILN_GRADIENT(MulOp) {
  Value dy = gradients[0];
  return toOperands(b, getLhs(), getRhs(), b.mul(dy, getRhs()), b.mul(dy, getLhs()));
}
KILN_GRADIENT(DivOp) {
  Value dy = gradients[0], slope = b.div(getResult(), getRhs());
  return toOperands(b, getLhs(), getRhs(), b.div(dy, getRhs()), b.negate(b.mul(dy, slope)));
}
KILN_GRADIENT(MaximumOp) {
  return toChosen(b, getLhs(), getRhs(), b.create<LessOp>(getRhs(), getLhs()), b.create<LessOp>(getLhs(), getRhs()),
                  gradients[0]);
}
KILN_GRADIENT(MinimumOp) {
  return toChosen(b, getLhs(), getRhs(), b.create<LessOp>(getLhs(), getRhs()), b.create<LessOp>(getRhs(), getLhs()),
                  gradients[0]);
}
KILN_GRADIENT(WhereOp) {
  Value dy = gradients[0], zero = b.number(dy, 0);
  SmallVector<Value> both =
      toOperands(b, getLhs(), getRhs(), b.where(getCondition(), dy, zero), b.where(getCondition(), zero, dy));
  return {{}, both[0], both[1]};
}

KILN_GRADIENT(ExpOp) { return {b.mul(gradients[0], getResult())}; }
KILN_GRADIENT(LogOp) { return {b.div(gradients[0], getX())}; }
KILN_GRADIENT(SqrtOp) { return {b.div(b.scale(gradients[0], 0.5), getResult())}; }
KILN_GRADIENT(TanhOp) { return {b.mul(gradients[0], b.sub(b.number(getX(), 1), b.mul(getResult(), getResult())))}; }
KILN_GRADIENT(SigmoidOp) { return {b.mul(gradients[0], b.mul(getResult(), b.sub(b.number(getX(), 1), getResult())))}; }
KILN_GRADIENT(SinOp) { return {b.mul(gradients[0], b.create<CosOp>(getX()))}; }
KILN_GRADIENT(CosOp) { return {b.negate(b.mul(gradients[0], b.create<SinOp>(getX())))}; }
KILN_GRADIENT(ErfOp) {
  Value density = b.create<ExpOp>(b.negate(b.mul(getX(), getX())));
  return {b.mul(gradients[0], b.scale(density, 2 * std::numbers::inv_sqrtpi))};
}
KILN_GRADIENT(Expm1Op) { return {b.mul(gradients[0], b.add(getResult(), b.number(getX(), 1)))}; }
KILN_GRADIENT(Log1pOp) { return {b.div(gradients[0], b.add(getX(), b.number(getX(), 1)))}; }
KILN_GRADIENT(ReluOp) {
  Value zero = b.number(getX(), 0);
  return {b.where(b.create<LessEqualOp>(getX(), zero), zero, gradients[0])};
}
KILN_GRADIENT(AbsOp) {
  Value dy = gradients[0], zero = b.number(dy, 0);
  Value positive = b.where(b.create<LessOp>(zero, getX()), dy, zero);
  return {b.where(b.create<LessOp>(getX(), zero), b.negate(dy), positive)};
}
KILN_GRADIENT(FloorOp) { return {Value()}; }
KILN_GRADIENT(RoundOp) { return {Value()}; }
KILN_GRADIENT(SoftplusOp) { return {b.mul(gradients[0], b.create<SigmoidOp>(getX()))}; }

/// x s(u(x)) with s the logistic function: s + x s (1 - s) u'.
static Value gateSlope(GradientBuilder &b, Value x, Value s, Value slope) {
  Value rest = b.sub(b.number(x, 1), s);
  return b.mul(s, b.add(b.number(x, 1), b.mul(b.mul(x, rest), slope)));
}

KILN_GRADIENT(SiluOp) {
  return {b.mul(gradients[0], gateSlope(b, getX(), b.create<SigmoidOp>(getX()), b.number(getX(), 1)))};
}
/// x s(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
KILN_GRADIENT(GeluTanhOp) {
  const double scale = 2 * std::sqrt(2 / std::numbers::pi);
  Value x = getX(), square = b.mul(x, x);
  Value u = b.mul(x, b.add(b.scale(square, scale * 0.044715), b.number(x, scale)));
  Value slope = b.add(b.scale(square, 3 * scale * 0.044715), b.number(x, scale));
  return {b.mul(gradients[0], gateSlope(b, x, b.create<SigmoidOp>(u), slope))};
}
/// Phi(x) + x phi(x), of the normal distribution.
KILN_GRADIENT(GeluOp) {
  Value x = getX(), density = b.create<ExpOp>(b.scale(b.mul(x, x), -0.5));
  Value rest = b.scale(b.mul(x, density), 1 / std::sqrt(2 * std::numbers::pi));
  return {b.mul(gradients[0], b.add(b.create<NormalCdfOp>(x), rest))};
}
KILN_GRADIENT(NormalCdfOp) {
  Value density = b.create<ExpOp>(b.scale(b.mul(getX(), getX()), -0.5));
  return {b.mul(gradients[0], b.scale(density, 1 / std::sqrt(2 * std::numbers::pi)))};
}

/// The gradient drops the same elements.
KILN_GRADIENT(DropoutOp) {
  SmallVector<Value> result(getNumOperands());
  result[0] = b.create<DropoutOp>(gradients[0], getSeed(), getStep(), getIteration(), getProbability(), getStream());
  return result;
}

/// Independent of the loss: the parameter moves towards its target.
KILN_GRADIENT(RunningAverageOp) { return {b.sub(getKept(), getTarget()), gradients[0], Value()}; }

KILN_GRADIENT(CastOp) {
  if (!isa<FloatType>(rankedType(getX()).getElementType()))
    return {Value()};
  return {b.createAs<CastOp>(getX().getType(), gradients[0])};
}

} // namespace mlir::kiln
