// SPDX-License-Identifier: Apache-2.0
//
// Where LLVM leaves a result undefined, such as for a division by zero, the result is that of
// compiler/verify/ScalarOps.cpp, which evaluates kernels.
#include "targets/cuda/ptx/ScalarOps.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

namespace kiln::cuda {

using namespace mlir;
using tile::Builder;
using tile::Values;
using Operands = ArrayRef<Value>;

Type deviceType(Builder &b, Type type) {
  if (type.isIndex())
    return b.getI32Type();
  if (type.isF32())
    return b.getF32Type();
  if (type.isF16())
    return b.getF16Type();
  if (type.isBF16())
    return b.getBF16Type();
  auto integer = dyn_cast<IntegerType>(type);
  const bool isKnown = integer && llvm::is_contained({1, 8, 16, 32, 64}, int(integer.getWidth()));
  return isKnown ? b.getIntegerType(integer.getWidth()) : Type();
}

Value translateConstant(Builder &b, TypedAttr value) {
  Type type = deviceType(b, value.getType());
  if (!type)
    return {};
  if (auto number = dyn_cast<FloatAttr>(value))
    return arith::ConstantOp::create(b, FloatAttr::get(type, number.getValue()));
  if (auto number = dyn_cast<IntegerAttr>(value))
    return b.integer(type, number.getValue().getBitWidth() == 1 ? int64_t(number.getValue().getBoolValue())
                                                                : number.getValue().getSExtValue());
  return {};
}

namespace {

//===- Floats ------------------------------------------------------------===//

bool isNarrowFloat(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32; }

Value widened(Builder &b, Value x) {
  return isNarrowFloat(x.getType()) ? b.createOrFold<arith::ExtFOp>(b.getF32Type(), x) : x;
}

arith::FastMathFlags flagsOf(Operation *op) {
  return op->hasAttr(mlir::kiln::strictAttrName) ? arith::FastMathFlags::none : arith::FastMathFlags::contract;
}

Value number(Builder &b, double value) { return arith::ConstantOp::create(b, b.getF32FloatAttr(float(value))); }

/// Rounds towards zero; NaN and values that do not fit become the least integer.
Value toInteger(Builder &b, Value x, Type type) {
  Value isAbove = b.createOrFold<arith::CmpFOp>(arith::CmpFPredicate::OGE, x, number(b, -0x1p31));
  Value isBelow = b.createOrFold<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, number(b, 0x1p31));
  Value fits = b.createOrFold<arith::AndIOp>(isAbove, isBelow);
  Value inside = b.createOrFold<arith::SelectOp>(fits, x, number(b, -0x1p31));
  Value result = b.createOrFold<arith::FPToSIOp>(b.getI32Type(), inside);
  if (type == result.getType())
    return result;
  return type.getIntOrFloatBitWidth() < 32 ? b.createOrFold<arith::TruncIOp>(type, result) : b.widen(result);
}

/// Translates ops on f32; returns null for others.
Value translateFloatOp(Builder &b, Operation *op, Operands x) {
  const arith::FastMathFlags flags = flagsOf(op);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::AddFOp) { return b.createOrFold<arith::AddFOp>(x[0], x[1], flags); })
      .Case([&](arith::SubFOp) { return b.createOrFold<arith::SubFOp>(x[0], x[1], flags); })
      .Case([&](arith::MulFOp) { return b.createOrFold<arith::MulFOp>(x[0], x[1], flags); })
      .Case([&](arith::DivFOp) { return b.createOrFold<arith::DivFOp>(x[0], x[1]); })
      .Case([&](arith::NegFOp) { return b.createOrFold<arith::NegFOp>(x[0]); })
      .Case([&](arith::MaximumFOp) { return b.createOrFold<arith::MaximumFOp>(x[0], x[1]); })
      .Case([&](arith::MinimumFOp) { return b.createOrFold<arith::MinimumFOp>(x[0], x[1]); })
      .Case([&](arith::MaxNumFOp) { return b.createOrFold<arith::MaxNumFOp>(x[0], x[1]); })
      .Case([&](arith::MinNumFOp) { return b.createOrFold<arith::MinNumFOp>(x[0], x[1]); })
      .Case([&](math::FmaOp) { return b.createOrFold<math::FmaOp>(x[0], x[1], x[2]); })
      .Case([&](math::AbsFOp) { return b.createOrFold<math::AbsFOp>(x[0]); })
      .Case([&](math::SqrtOp) { return b.createOrFold<math::SqrtOp>(x[0]); })
      .Case([&](math::RsqrtOp) {
        return b.createOrFold<arith::DivFOp>(number(b, 1), b.createOrFold<math::SqrtOp>(x[0]));
      })
      .Case([&](math::FloorOp) { return b.createOrFold<math::FloorOp>(x[0]); })
      .Case([&](math::CeilOp) { return b.createOrFold<math::CeilOp>(x[0]); })
      .Case([&](math::TruncOp) { return b.createOrFold<math::TruncOp>(x[0]); })
      .Case([&](math::RoundOp) { return b.createOrFold<math::RoundOp>(x[0]); })
      .Case([&](math::RoundEvenOp) { return b.createOrFold<math::RoundEvenOp>(x[0]); })
      .Default([](Operation *) { return Value(); });
}

//===- Integers ----------------------------------------------------------===//

Value select(Builder &b, Value condition, Value yes, Value no) {
  return b.createOrFold<arith::SelectOp>(condition, yes, no);
}

Value isEqual(Builder &b, Value x, int64_t value) {
  return b.compare(arith::CmpIPredicate::eq, x, b.integer(x.getType(), value));
}

/// A divisor for which the division is defined: 1 in place of 0 and -1.
struct Divisor {
  Value isZero, isMinusOne, value;
};
Divisor divisor(Builder &b, Value y) {
  Value isZero = isEqual(b, y, 0), isMinusOne = isEqual(b, y, -1);
  Value isEither = b.createOrFold<arith::OrIOp>(isZero, isMinusOne);
  return {isZero, isMinusOne, select(b, isEither, b.integer(y.getType(), 1), y)};
}

/// Rounds towards zero; x / 0 is 0, and the least number divided by -1 is itself.
Value divide(Builder &b, Value x, Value y) {
  Value zero = b.integer(x.getType(), 0);
  Divisor by = divisor(b, y);
  Value quotient = b.createOrFold<arith::DivSIOp>(x, by.value);
  quotient = select(b, by.isMinusOne, b.createOrFold<arith::SubIOp>(zero, x), quotient);
  return select(b, by.isZero, zero, quotient);
}

Value remainder(Builder &b, Value x, Value y) { return b.createOrFold<arith::RemSIOp>(x, divisor(b, y).value); }

Value floorDivide(Builder &b, Value x, Value y) {
  Value zero = b.integer(x.getType(), 0), rest = remainder(b, x, y);
  Value hasRest = b.compare(arith::CmpIPredicate::ne, rest, zero);
  Value isBelow = b.compare(arith::CmpIPredicate::slt, b.createOrFold<arith::XOrIOp>(x, y), zero);
  Value isRounded = b.createOrFold<arith::AndIOp>(hasRest, isBelow);
  isRounded = b.createOrFold<arith::AndIOp>(isRounded, b.compare(arith::CmpIPredicate::ne, y, zero));
  Value one = select(b, isRounded, b.integer(x.getType(), 1), zero);
  return b.createOrFold<arith::SubIOp>(divide(b, x, y), one);
}

/// Unsigned; a division by 0 gives 0.
template <class Op> Value divideUnsigned(Builder &b, Value x, Value y) {
  Value isZero = isEqual(b, y, 0);
  Value result = b.createOrFold<Op>(x, select(b, isZero, b.integer(y.getType(), 1), y));
  return select(b, isZero, b.integer(x.getType(), 0), result);
}

/// A shift by the bit width or more gives what repeated shifts by one bit leave.
template <class Op> Value shift(Builder &b, Value x, Value by) {
  const unsigned width = x.getType().getIntOrFloatBitWidth();
  Value isWithin = b.compare(arith::CmpIPredicate::ult, by, b.integer(by.getType(), width));
  Value most = b.integer(by.getType(), width - 1);
  Value shifted = b.createOrFold<Op>(x, select(b, isWithin, by, most));
  if (std::is_same_v<Op, arith::ShRSIOp>)
    return shifted;
  return select(b, isWithin, shifted, b.integer(x.getType(), 0));
}

/// Converts between integers, with sign or zero extension.
Value resize(Builder &b, Value x, Type type, bool isSigned) {
  const unsigned from = x.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return x;
  if (from > to)
    return b.createOrFold<arith::TruncIOp>(type, x);
  return isSigned ? b.createOrFold<arith::ExtSIOp>(type, x) : b.createOrFold<arith::ExtUIOp>(type, x);
}

/// Converts an integer to an index, clamped to [-2^30, 2^30], so that its sums with extents are on the same side of a
/// table.
Value toIndex(Builder &b, arith::IndexCastOp op, Value x) {
  if (!op.getType().isIndex() || x.getDefiningOp<arith::ConstantOp>() || x.getType().getIntOrFloatBitWidth() < 32)
    return resize(b, x, deviceType(b, op.getType()), /*isSigned=*/true);
  Value held = b.createOrFold<arith::MinSIOp>(x, b.integer(x.getType(), int64_t(1) << 30));
  held = b.createOrFold<arith::MaxSIOp>(held, b.integer(x.getType(), -(int64_t(1) << 30)));
  return resize(b, held, b.getI32Type(), /*isSigned=*/true);
}

/// Translates ops on integers; returns null for others.
Value translateIntegerOp(Builder &b, Operation *op, Operands x) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::AddIOp) { return b.createOrFold<arith::AddIOp>(x[0], x[1]); })
      .Case([&](arith::SubIOp) { return b.createOrFold<arith::SubIOp>(x[0], x[1]); })
      .Case([&](arith::MulIOp) { return b.createOrFold<arith::MulIOp>(x[0], x[1]); })
      .Case([&](arith::DivSIOp) { return divide(b, x[0], x[1]); })
      .Case([&](arith::RemSIOp) { return remainder(b, x[0], x[1]); })
      .Case([&](arith::FloorDivSIOp) { return floorDivide(b, x[0], x[1]); })
      .Case([&](arith::DivUIOp) { return divideUnsigned<arith::DivUIOp>(b, x[0], x[1]); })
      .Case([&](arith::RemUIOp) { return divideUnsigned<arith::RemUIOp>(b, x[0], x[1]); })
      .Case([&](arith::MaxSIOp) { return b.createOrFold<arith::MaxSIOp>(x[0], x[1]); })
      .Case([&](arith::MinSIOp) { return b.createOrFold<arith::MinSIOp>(x[0], x[1]); })
      .Case([&](arith::AndIOp) { return b.createOrFold<arith::AndIOp>(x[0], x[1]); })
      .Case([&](arith::OrIOp) { return b.createOrFold<arith::OrIOp>(x[0], x[1]); })
      .Case([&](arith::XOrIOp) { return b.createOrFold<arith::XOrIOp>(x[0], x[1]); })
      .Case([&](arith::ShLIOp) { return shift<arith::ShLIOp>(b, x[0], x[1]); })
      .Case([&](arith::ShRSIOp) { return shift<arith::ShRSIOp>(b, x[0], x[1]); })
      .Case([&](arith::ShRUIOp) { return shift<arith::ShRUIOp>(b, x[0], x[1]); })
      .Case([&](arith::CmpIOp o) { return b.compare(o.getPredicate(), x[0], x[1]); })
      .Case([&](math::AbsIOp) {
        Value negated = b.createOrFold<arith::SubIOp>(b.integer(x[0].getType(), 0), x[0]);
        return b.createOrFold<arith::MaxSIOp>(x[0], negated);
      })
      .Default([](Operation *) { return Value(); });
}

//===- Conversions -------------------------------------------------------===//

/// `type`: the result's type.
Value translateConversion(Builder &b, Operation *op, Operands x, Type type) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::SelectOp) { return select(b, x[0], x[1], x[2]); })
      .Case([&](arith::CmpFOp o) {
        return b.createOrFold<arith::CmpFOp>(o.getPredicate(), widened(b, x[0]), widened(b, x[1]));
      })
      .Case([&](arith::ExtFOp) { return widened(b, x[0]); })
      .Case([&](arith::TruncFOp) { return b.createOrFold<arith::TruncFOp>(type, x[0]); })
      .Case([&](arith::FPToSIOp) { return toInteger(b, widened(b, x[0]), type); })
      .Case([&](arith::SIToFPOp) { return b.createOrFold<arith::SIToFPOp>(b.getF32Type(), x[0]); })
      .Case([&](arith::UIToFPOp) { return b.createOrFold<arith::UIToFPOp>(b.getF32Type(), x[0]); })
      .Case([&](arith::IndexCastOp o) { return toIndex(b, o, x[0]); })
      .Case<arith::ExtSIOp, arith::TruncIOp>([&](auto) { return resize(b, x[0], type, /*isSigned=*/true); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) { return resize(b, x[0], type, /*isSigned=*/false); })
      .Case([&](arith::BitcastOp) { return b.createOrFold<arith::BitcastOp>(type, x[0]); })
      .Default([](Operation *) { return Value(); });
}

} // namespace

Value translateScalarOp(Builder &b, Operation *op, Operands operands) {
  Type type = op->getNumResults() == 1 ? deviceType(b, op->getResult(0).getType()) : Type();
  if (!type || !llvm::all_of(op->getOperandTypes(), [&](Type operand) { return deviceType(b, operand); }))
    return {};
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return translateConstant(b, constant.getValue());
  Value result = translateConversion(b, op, operands, type);
  if (!result)
    result = translateIntegerOp(b, op, operands);
  if (!result) {
    Values wide;
    for (Value operand : operands)
      wide.push_back(widened(b, operand));
    result = translateFloatOp(b, op, wide);
  }
  return result && isNarrowFloat(type) && result.getType().isF32() ? b.createOrFold<arith::TruncFOp>(type, result)
                                                                   : result;
}

} // namespace kiln::cuda
