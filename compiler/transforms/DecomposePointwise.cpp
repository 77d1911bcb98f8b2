// SPDX-License-Identifier: Apache-2.0
//
// Elements of the ops that work on each element alone. Broadcasting is a coordinate 0, or a coordinate left away.
#include "compiler/transforms/KernelBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::kiln {

bool isPointwise(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, MaximumOp, LessOp, WhereOp, ExpandOp, ExpOp, LogOp, SqrtOp, TanhOp, SigmoidOp,
             ReluOp, GeluOp, GeluTanhOp, SiluOp>(op);
}

/// The coordinates, aligned at the last axis, of an operand that broadcasts.
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

/// Strict: else the code generator may ask whether lhs is not at least rhs, which is so for NaN.
static Value createLess(ElementBuilder &b, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType())) {
    auto less = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, lhs, rhs);
    less->setAttr("kiln.strict", b.getUnitAttr());
    return less;
  }
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lhs, rhs);
}

/// NaN if one of them is. With a number targets keep it themselves.
static Value createMaximum(ElementBuilder &b, Value lhs, Value rhs) {
  if (!isa<FloatType>(lhs.getType()))
    return arith::MaxSIOp::create(b, lhs, rhs);
  if (rhs.getDefiningOp<arith::ConstantOp>())
    return arith::MaximumFOp::create(b, lhs, rhs);
  return b.fromOrder(arith::MaxSIOp::create(b, b.toOrder(lhs), b.toOrder(rhs)));
}

/// 1 + e^-x
static Value createOnePlusExp(ElementBuilder &b, Value x) {
  Value exp = math::ExpOp::create(b, Value(arith::NegFOp::create(b, x)));
  return arith::AddFOp::create(b, exp, b.constant(x.getType(), 1));
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

Value evaluatePointwise(ElementBuilder &b, Operation *op, ArrayRef<Coordinate> at) {
  SmallVector<Value> x;
  for (Value operand : op->getOperands())
    x.push_back(b.read(operand, broadcast(b, operand, at)));
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](AddOp) { return createBinary<arith::AddFOp, arith::AddIOp>(b, x[0], x[1]); })
      .Case([&](SubOp) { return createBinary<arith::SubFOp, arith::SubIOp>(b, x[0], x[1]); })
      .Case([&](MulOp) { return createBinary<arith::MulFOp, arith::MulIOp>(b, x[0], x[1]); })
      .Case([&](DivOp) { return createBinary<arith::DivFOp, arith::DivSIOp>(b, x[0], x[1]); })
      .Case([&](MaximumOp) { return createMaximum(b, x[0], x[1]); })
      .Case([&](LessOp) { return createLess(b, x[0], x[1]); })
      .Case([&](WhereOp) { return arith::SelectOp::create(b, x[0], x[1], x[2]); })
      .Case([&](ExpandOp) { return x[0]; })
      .Case([&](ExpOp) { return math::ExpOp::create(b, x[0]); })
      .Case([&](LogOp) { return math::LogOp::create(b, x[0]); })
      .Case([&](SqrtOp) { return math::SqrtOp::create(b, x[0]); })
      .Case([&](TanhOp) { return math::TanhOp::create(b, x[0]); })
      .Case(
          [&](SigmoidOp) { return arith::DivFOp::create(b, b.constant(x[0].getType(), 1), createOnePlusExp(b, x[0])); })
      .Case([&](ReluOp) { return arith::MaximumFOp::create(b, x[0], b.constant(x[0].getType(), 0)); })
      .Case([&](GeluOp) { return createGelu(b, x[0]); })
      .Case([&](GeluTanhOp) { return createGeluTanh(b, x[0]); })
      .Case([&](SiluOp) { return arith::DivFOp::create(b, x[0], createOnePlusExp(b, x[0])); });
}

} // namespace mlir::kiln
