// SPDX-License-Identifier: Apache-2.0
//
// Elements of elementwise ops. A broadcast axis has coordinate 0, or none.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {

/// Returns the coordinates, aligned at the last axis, of an operand that broadcasts.
static Coordinates broadcast(ElementBuilder &element, Value operand, ArrayRef<Coordinate> at) {
  auto type = cast<RankedTensorType>(operand.getType());
  Coordinates result(at.take_back(type.getRank()));
  for (auto [coordinate, extent] : llvm::zip_equal(result, type.getShape()))
    if (extent == 1)
      coordinate = element.getAffineConstantExpr(0);
  return result;
}

template <typename FloatOp, typename IntegerOp> static Value createBinary(ElementBuilder &b, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return FloatOp::create(b, lhs, rhs);
  return IntegerOp::create(b, lhs, rhs);
}

/// Strict: otherwise the code generator may test that lhs is not at least rhs, which also holds for NaN.
static Value createComparison(ElementBuilder &b, arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofIntegers,
                              Value lhs, Value rhs) {
  if (!isa<FloatType>(lhs.getType()))
    return arith::CmpIOp::create(b, ofIntegers, lhs, rhs);
  auto comparison = arith::CmpFOp::create(b, ofFloats, lhs, rhs);
  comparison->setAttr(strictAttrName, b.getUnitAttr());
  return comparison;
}

static Value createLess(ElementBuilder &b, Value lhs, Value rhs) {
  return createComparison(b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, lhs, rhs);
}

/// NaN if either operand is. With a constant operand targets propagate NaN themselves.
static Value createMaximum(ElementBuilder &b, Value lhs, Value rhs) {
  if (!isa<FloatType>(lhs.getType()))
    return arith::MaxSIOp::create(b, lhs, rhs);
  if (rhs.getDefiningOp<arith::ConstantOp>())
    return arith::MaximumFOp::create(b, lhs, rhs);
  return b.fromOrder(arith::MaxSIOp::create(b, b.toOrder(lhs), b.toOrder(rhs)));
}

/// NaN if either operand is: NaN also orders last among negated numbers.
static Value createMinimum(ElementBuilder &b, Value lhs, Value rhs) {
  if (!isa<FloatType>(lhs.getType()))
    return arith::MinSIOp::create(b, lhs, rhs);
  if (rhs.getDefiningOp<arith::ConstantOp>())
    return arith::SelectOp::create(b, createLess(b, rhs, lhs), rhs, lhs);
  auto negated = [&](Value x) -> Value { return arith::NegFOp::create(b, x); };
  return negated(b.fromOrder(arith::MaxSIOp::create(b, b.toOrder(negated(lhs)), b.toOrder(negated(rhs)))));
}

/// max(x, 0) + log(1 + t) with t = e^-|x|, of which the second is 2 atanh(s) with s = t / (2 + t), at most 1/3: its
/// series keeps the digits of a small t, and ends below 1e-9 of the sum.
static Value createSoftplus(ElementBuilder &b, Value x) {
  Type type = x.getType();
  auto number = [&](double value) { return b.constant(type, value); };
  auto fused = [&](Value x, Value y, Value z) -> Value {
    auto op = math::FmaOp::create(b, x, y, z);
    op->setAttr(strictAttrName, b.getUnitAttr());
    return op;
  };
  Value exp = math::ExpOp::create(b, Value(arith::NegFOp::create(b, Value(math::AbsFOp::create(b, x)))));
  Value s = arith::DivFOp::create(b, exp, Value(arith::AddFOp::create(b, exp, number(2))));
  Value square = arith::MulFOp::create(b, s, s), series = number(2.0 / 15);
  for (int power = 13; power > 0; power -= 2)
    series = fused(series, square, number(2.0 / power));
  return fused(s, series, arith::MaximumFOp::create(b, x, number(0)));
}

/// Floats are clamped to the range of i32 first: beyond it the conversion differs between CPUs. A 16-bit float is
/// rounded here, regardless of its use.
static Value createCast(ElementBuilder &b, Value x, Type type) {
  const bool isBoolean = x.getType().isInteger(1);
  if (isa<FloatType>(type)) {
    Type computed = computedType(type);
    if (isBoolean)
      return arith::SelectOp::create(b, x, b.constant(computed, 1), b.constant(computed, 0));
    if (!isa<FloatType>(x.getType()))
      x = arith::SIToFPOp::create(b, computed, x);
    return b.convert(b.cut(x, type), type);
  }
  if (isBoolean)
    return arith::SelectOp::create(b, x, b.constant(type, 1), b.constant(type, 0));
  const bool isNarrow = type.isInteger(8);
  if (isa<IntegerType>(x.getType())) {
    if (!isNarrow)
      return arith::ExtSIOp::create(b, type, x);
    Value above = arith::MaxSIOp::create(b, x, b.constant(x.getType(), -128));
    return arith::TruncIOp::create(b, type, Value(arith::MinSIOp::create(b, above, b.constant(x.getType(), 127))));
  }
  const double least = isNarrow ? -128 : -2147483648.0, most = isNarrow ? 127 : 2147483520.0;
  Value above = arith::MaximumFOp::create(b, x, b.constant(x.getType(), least));
  Value within = arith::MinNumFOp::create(b, above, b.constant(x.getType(), most)); // turns NaN into a number
  Value whole = arith::FPToSIOp::create(b, b.getI32Type(), within);
  return isNarrow ? Value(arith::TruncIOp::create(b, type, whole)) : whole;
}

/// 1 + e^-x
static Value createOnePlusExp(ElementBuilder &b, Value x) {
  Value exp = math::ExpOp::create(b, Value(arith::NegFOp::create(b, x)));
  return arith::AddFOp::create(b, exp, b.constant(x.getType(), 1));
}

/// (1 + erf(x / sqrt(2))) / 2 as (1 +- erf(|x| / sqrt(2))) / 2.
static Value createNormalCdf(ElementBuilder &b, Value x) {
  Type type = x.getType();
  Value size = math::AbsFOp::create(b, x), half = b.constant(type, 0.5), zero = b.constant(type, 0);
  auto erf = math::ErfOp::create(b, Value(arith::MulFOp::create(b, size, b.constant(type, 0.70710678118654752440))));
  erf->setAttr(nonnegativeAttrName, b.getUnitAttr());
  Value part = arith::MulFOp::create(b, Value(erf), half);
  return arith::SelectOp::create(b, createLess(b, x, zero), Value(arith::SubFOp::create(b, half, part)),
                                 Value(arith::AddFOp::create(b, half, part)));
}

/// x (1 + erf(x / sqrt(2))) / 2 as |x / 2| erf(|x / 2| sqrt(2)) + x / 2.
static Value createGelu(ElementBuilder &b, Value x) {
  Value half = arith::MulFOp::create(b, x, b.constant(x.getType(), 0.5)), size = math::AbsFOp::create(b, half);
  auto erf =
      math::ErfOp::create(b, Value(arith::MulFOp::create(b, size, b.constant(x.getType(), 1.41421356237309504880))));
  erf->setAttr(nonnegativeAttrName, b.getUnitAttr());
  return arith::AddFOp::create(b, Value(arith::MulFOp::create(b, size, erf)), half);
}

/// x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3) as x / (1 + e^(-2 u)).
static Value createGeluTanh(ElementBuilder &b, Value x) {
  Type type = x.getType();
  constexpr double scale = -2 * 0.79788456080286535588 * 1.44269504088896340736; // sqrt(2 / pi), log2(e)
  Value square = arith::MulFOp::create(b, x, x);
  Value cubic = arith::AddFOp::create(b, Value(arith::MulFOp::create(b, square, b.constant(type, scale * 0.044715))),
                                      b.constant(type, scale));
  Value exp = math::Exp2Op::create(b, Value(arith::MulFOp::create(b, x, cubic)));
  return arith::DivFOp::create(b, x, Value(arith::AddFOp::create(b, exp, b.constant(type, 1))));
}

Value evaluatePointwise(ElementBuilder &builder, Operation *op, ArrayRef<Coordinate> at,
                        function_ref<Value(ArrayRef<Value>)> compute) {
  SmallVector<Value> x;
  for (Value operand : op->getOperands())
    x.push_back(builder.read(operand, broadcast(builder, operand, at)));
  return compute(x);
}

/// Whether each operand has all of the axes or none.
bool collapsePointwise(Operation *op, RowCollapser &rows) {
  int64_t rank = rows.rankOf(op->getResult(0));
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    if (rows.rankOf(operand) == rank)
      return rows.markFull(operand);
    return rows.rankOf(operand) <= rank - rows.axes && rows.markWhole(operand);
  });
}

// Defines an op's scalar function; x are the elements of its operands.
#define KILN_COMPUTE(OP) Value OP::compute([[maybe_unused]] ElementBuilder &b, ArrayRef<Value> x)

KILN_COMPUTE(AddOp) { return createBinary<arith::AddFOp, arith::AddIOp>(b, x[0], x[1]); }
KILN_COMPUTE(SubOp) { return createBinary<arith::SubFOp, arith::SubIOp>(b, x[0], x[1]); }
KILN_COMPUTE(MulOp) { return createBinary<arith::MulFOp, arith::MulIOp>(b, x[0], x[1]); }
KILN_COMPUTE(DivOp) { return createBinary<arith::DivFOp, arith::DivSIOp>(b, x[0], x[1]); }
KILN_COMPUTE(MaximumOp) { return createMaximum(b, x[0], x[1]); }
KILN_COMPUTE(LessOp) { return createLess(b, x[0], x[1]); }
KILN_COMPUTE(MinimumOp) { return createMinimum(b, x[0], x[1]); }
KILN_COMPUTE(LessEqualOp) {
  return createComparison(b, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, x[0], x[1]);
}
KILN_COMPUTE(EqualOp) { return createComparison(b, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, x[0], x[1]); }
KILN_COMPUTE(LogicalAndOp) { return arith::AndIOp::create(b, x[0], x[1]); }
KILN_COMPUTE(LogicalOrOp) { return arith::OrIOp::create(b, x[0], x[1]); }
KILN_COMPUTE(LogicalXorOp) { return arith::XOrIOp::create(b, x[0], x[1]); }
KILN_COMPUTE(CastOp) { return createCast(b, x[0], getType().getElementType()); }
KILN_COMPUTE(SoftplusOp) { return createSoftplus(b, x[0]); }
KILN_COMPUTE(AbsOp) { return math::AbsFOp::create(b, x[0]); }
KILN_COMPUTE(FloorOp) { return math::FloorOp::create(b, x[0]); }
KILN_COMPUTE(RoundOp) { return math::RoundEvenOp::create(b, x[0]); }
KILN_COMPUTE(WhereOp) { return arith::SelectOp::create(b, x[0], x[1], x[2]); }
KILN_COMPUTE(ExpandOp) { return x[0]; }
KILN_COMPUTE(ExpOp) { return math::ExpOp::create(b, x[0]); }
KILN_COMPUTE(LogOp) { return math::LogOp::create(b, x[0]); }
KILN_COMPUTE(SqrtOp) { return math::SqrtOp::create(b, x[0]); }
KILN_COMPUTE(TanhOp) { return math::TanhOp::create(b, x[0]); }
KILN_COMPUTE(SinOp) { return math::SinOp::create(b, x[0]); }
KILN_COMPUTE(CosOp) { return math::CosOp::create(b, x[0]); }
KILN_COMPUTE(ErfOp) { return math::ErfOp::create(b, x[0]); }
KILN_COMPUTE(Expm1Op) { return math::ExpM1Op::create(b, x[0]); }
KILN_COMPUTE(Log1pOp) { return math::Log1pOp::create(b, x[0]); }
KILN_COMPUTE(SigmoidOp) { return arith::DivFOp::create(b, b.constant(x[0].getType(), 1), createOnePlusExp(b, x[0])); }
KILN_COMPUTE(ReluOp) { return arith::MaximumFOp::create(b, x[0], b.constant(x[0].getType(), 0)); }
KILN_COMPUTE(GeluOp) { return createGelu(b, x[0]); }
KILN_COMPUTE(NormalCdfOp) { return createNormalCdf(b, x[0]); }
KILN_COMPUTE(GeluTanhOp) { return createGeluTanh(b, x[0]); }
KILN_COMPUTE(SiluOp) { return arith::DivFOp::create(b, x[0], createOnePlusExp(b, x[0])); }

} // namespace mlir::kiln
