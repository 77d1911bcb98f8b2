// SPDX-License-Identifier: Apache-2.0
//
// Translates arith and math ops to Halide expressions. Halide lets LLVM assume that there are no infinities, so an
// infinite constant becomes the largest finite number. Ops with the attribute kiln.strict are neither reassociated nor
// contracted; all others may be.
#include "targets/halide/translate/Translator.h"

#include "compiler/dialect/StoredParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;

Halide::Type elementType(mlir::Type type) {
  if (type.isIndex())
    return Halide::Int(32);
  if (mlir::kiln::isHalfFloat(type))
    return Halide::UInt(16);
  if (auto floatType = dyn_cast<FloatType>(type)) {
    unsigned width = floatType.getWidth();
    return width == 32 || width == 64 ? Halide::Float(width) : Halide::Handle();
  }
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned width = integer.getWidth();
    if (width == 1)
      return Halide::Bool();
    return width == 8 || width == 16 || width == 32 || width == 64 ? Halide::Int(width) : Halide::Handle();
  }
  return Halide::Handle();
}

Halide::Type partElement(RankedTensorType tensor, unsigned part) {
  Halide::Type type = elementType(mlir::kiln::getStoredParts(tensor)[part].type.getElementType());
  if (mlir::kiln::getStorage(tensor) && type == Halide::Int(32))
    return Halide::UInt(32);
  return type.is_bool() ? Halide::UInt(8) : type;
}

std::string partSuffix(unsigned part) { return part == 0 ? "" : part == 1 ? "_scales" : "_zeros"; }

static Expr constant(arith::ConstantOp op) {
  Halide::Type type = elementType(op.getType());
  if (auto value = dyn_cast<FloatAttr>(op.getValue())) {
    APFloat number = value.getValue();
    if (number.isInfinity())
      number = APFloat::getLargest(number.getSemantics(), number.isNegative());
    return mlir::kiln::isHalfFloat(op.getType())
               ? Halide::Internal::make_const(type, number.bitcastToAPInt().getZExtValue())
               : Halide::Internal::make_const(type, number.convertToDouble());
  }
  if (auto value = dyn_cast<IntegerAttr>(op.getValue()))
    return type.is_bool() ? Halide::Internal::make_const(type, uint64_t(!value.getValue().isZero()))
                          : Halide::Internal::make_const(type, value.getValue().getSExtValue());
  return Expr();
}

static Expr compare(arith::CmpFPredicate predicate, const Expr &a, const Expr &b) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return Halide::Internal::const_false();
  case P::AlwaysTrue:
    return Halide::Internal::const_true();
  case P::OEQ:
  case P::UEQ:
    return a == b;
  case P::ONE:
  case P::UNE:
    return a != b;
  case P::OGT:
  case P::UGT:
    return a > b;
  case P::OGE:
  case P::UGE:
    return a >= b;
  case P::OLT:
  case P::ULT:
    return a < b;
  case P::OLE:
  case P::ULE:
    return a <= b;
  case P::ORD:
    return !Halide::is_nan(a) && !Halide::is_nan(b);
  case P::UNO:
    return Halide::is_nan(a) || Halide::is_nan(b);
  }
  return Expr();
}

/// Reinterprets the bits, except for constants: Halide merges two casts, the first one of a float, into one, which
/// loses the sign.
static Expr toUnsigned(const Expr &e) {
  Halide::Type type = e.type().with_code(halide_type_uint);
  return Halide::Internal::is_const(e) ? Halide::cast(type, e) : Halide::reinterpret(type, e);
}

/// Converts floats to signed integers. In later versions a reinterpretation of the result as unsigned would be merged
/// with this cast into one that loses the sign.
static Expr castToSigned(const Expr &x, Halide::Type type) {
  Expr cast = Halide::cast(type, x);
  return reinterpretsByCast ? hidden(cast) : cast;
}

/// Reinterprets the bits: Halide refuses to cast a constant that does not fit.
static Expr toSigned(const Expr &e) { return Halide::reinterpret(e.type().with_code(halide_type_int), e); }

static Expr compare(arith::CmpIPredicate predicate, const Expr &a, const Expr &b) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return a < b;
  case P::sle:
    return a <= b;
  case P::sgt:
    return a > b;
  case P::sge:
    return a >= b;
  case P::ult:
    return toUnsigned(a) < toUnsigned(b);
  case P::ule:
    return toUnsigned(a) <= toUnsigned(b);
  case P::ugt:
    return toUnsigned(a) > toUnsigned(b);
  case P::uge:
    return toUnsigned(a) >= toUnsigned(b);
  }
  return Expr();
}

/// Returns the divisor, or 1 for 0: lanes past a tail are computed from zeros, and an integer division by 0 traps.
static Expr divisor(const Expr &b) {
  return Halide::Internal::is_const(b) ? b : select(b == 0, Halide::Internal::make_one(b.type()), b);
}

/// Whether the op wraps. Sums, differences, products and left shifts of integers do; those of type index do not
/// overflow, which Halide assumes for all signed integers of at least 32 bits, and a shift to be a product.
static bool wraps(Operation *op) {
  auto type = dyn_cast<IntegerType>(op->getResult(0).getType());
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp>(op) && type && type.getWidth() >= 32;
}

/// Hides from Halide what a reduction compares its result with. In a loop over max(before, x) where x grows with the
/// loop, as positions do, Halide skips the iterations that change nothing. For that it subtracts the previous value,
/// initially the least integer, and ignores that the difference may overflow.
static Exprs hideCompared(Operation *op, Exprs x) {
  auto generic = dyn_cast<linalg::GenericOp>(op->getParentOp());
  auto isResult = [&](Value value) { return llvm::is_contained(generic.getRegionOutputArgs(), value); };
  if (!generic || generic.getNumReductionLoops() == 0 || llvm::none_of(op->getOperands(), isResult))
    return x;
  for (auto [value, expr] : llvm::zip_equal(op->getOperands(), x))
    if (!isResult(value) && expr.type() == Halide::Int(32))
      expr = reinterpretsByCast ? hidden(expr) : toSigned(toUnsigned(expr));
  return x;
}

static Expr negated(const Expr &x) {
  return toSigned(toUnsigned(Halide::Internal::make_zero(x.type())) - toUnsigned(x));
}

/// Divides by a positive constant, rounding towards zero. Halide's own division is wrong for the least i32; the
/// division of the unsigned magnitude is not. An index is never negative.
static Expr divideByConstant(const Expr &a, const Expr &b, bool isIndex) {
  if (isIndex)
    return Halide::div_round_to_zero(a, b);
  Expr quotient = toSigned(toUnsigned(select(a < 0, negated(a), a)) / toUnsigned(b));
  return select(a < 0, negated(quotient), quotient);
}

/// Divides, rounding towards zero. x / 0 is 0, and the least integer divided by -1 is itself; the CPU's division traps
/// for both.
static Expr divide(const Expr &a, const Expr &b, bool isIndex) {
  if (Halide::Internal::is_positive_const(b))
    return divideByConstant(a, b, isIndex);
  Expr zero = Halide::Internal::make_zero(a.type()), one = Halide::Internal::make_one(a.type());
  Expr quotient = Halide::div_round_to_zero(a, select(b == 0 || b == -1, one, b));
  return select(b == 0, zero, select(b == -1, negated(a), quotient));
}

static Expr floorDivide(const Expr &a, const Expr &b) {
  // Halide's own division leaves a remainder that is not negative; the two differ only for negative divisors.
  return Halide::Internal::is_positive_const(b) ? a / b : select(b > 0, a / b, -a / -b);
}

/// Converts x to `type`, an integer or float. A true boolean becomes 1, or -1 if `isSigned`.
static Expr extend(const Expr &x, Halide::Type type, bool isSigned) {
  if (!x.type().is_bool())
    return isSigned || type.is_float() ? Halide::cast(type, x) : Halide::cast(type, toUnsigned(x));
  return select(x, Halide::Internal::make_const(type, isSigned ? -1 : 1), Halide::Internal::make_zero(type));
}

/// Converts a computed integer to an index or length between 0 and 2^30, so that no sum with extents overflows. Halide
/// assumes this when it moves sums into the bounds of an index. Its simplifier does not see through unsigned numbers,
/// or in later versions through `hidden`.
static Expr toIndex(const Expr &x) {
  if (Halide::Internal::is_const(x) || x.type() != Halide::Int(32))
    return Halide::cast<int32_t>(x);
  if (reinterpretsByCast)
    return hidden(Halide::min(Halide::max(x, 0), 1 << 30));
  return toSigned(Halide::min(toUnsigned(Halide::max(x, 0)), Halide::Internal::make_const(Halide::UInt(32), 1 << 30)));
}

static Expr roundAwayFromZero(const Expr &x) {
  Expr magnitude = Halide::floor(Halide::abs(x) + Halide::Internal::make_const(x.type(), 0.5));
  return select(x < 0, -magnitude, magnitude);
}

static Expr logical(Operation *op, const Expr &a, const Expr &b) {
  bool isBool = a.type().is_bool();
  if (isa<arith::AndIOp>(op))
    return isBool ? a && b : a & b;
  if (isa<arith::OrIOp>(op))
    return isBool ? a || b : a | b;
  return isBool ? a != b : a ^ b;
}

Expr choose(const Expr &condition, const Expr &yes, const Expr &no) {
  if (!yes.type().is_float())
    return Halide::select(condition, yes, no);
  Halide::Type bits = yes.type().with_code(halide_type_int);
  return Halide::reinterpret(yes.type(),
                             Halide::select(condition, Halide::reinterpret(bits, yes), Halide::reinterpret(bits, no)));
}

/// Returns the maximum, NaN if x is. Halide's max(NaN, constant) is the constant; the comparison keeps NaN, and is one
/// instruction as well.
static Expr maximum(const Expr &x, const Expr &y) {
  return Halide::Internal::is_const(y) ? choose(Halide::strict_float(x < y), y, x) : Halide::max(x, y);
}

static Expr minimum(const Expr &x, const Expr &y) {
  return Halide::Internal::is_const(y) ? choose(Halide::strict_float(y < x), y, x) : Halide::min(x, y);
}

/// Whether `isSo` holds for a value that this one may be, within one expression of Halide: looks through selects, and
/// through tensors that are inlined.
static bool mayBe(Value value, function_ref<bool(Value)> isSo) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto user = dyn_cast<linalg::GenericOp>(argument.getOwner()->getParentOp());
    value = user ? user->getOperand(argument.getArgNumber()) : value;
    auto producer = value.getDefiningOp<linalg::GenericOp>();
    return producer && producer.getNumReductionLoops() == 0 &&
           mayBe(producer.getBlock()->getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()), isSo);
  }
  if (auto select = value.getDefiningOp<arith::SelectOp>())
    return mayBe(select.getTrueValue(), isSo) || mayBe(select.getFalseValue(), isSo);
  return isSo(value);
}

static bool isSmallNatural(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
  return number && number.getValueAsDouble() >= 0 && number.getValueAsDouble() < 256 && number.getValue().isInteger();
}

/// Whether the value is a square root, or a product or quotient of one.
static bool hasRoot(Value value) {
  if (auto product = value.getDefiningOp<arith::MulFOp>())
    return mayBe(product.getLhs(), hasRoot) || mayBe(product.getRhs(), hasRoot);
  if (auto quotient = value.getDefiningOp<arith::DivFOp>())
    return mayBe(quotient.getLhs(), hasRoot);
  return value.getDefiningOp<math::SqrtOp>();
}

/// Multiplies floats. LLVM would replace the product of two square roots by the root of the product or by the radicand,
/// which are numbers even if both radicands are negative. Halide's search for intrinsics takes a product of small
/// natural numbers, which it does not fold inside of a strict expression, for one of ever narrower integers, until
/// there are no bits left; so one factor is hidden.
static Expr multiply(arith::MulFOp op, const Exprs &x) {
  auto bothMayBe = [&](function_ref<bool(Value)> isSo) { return mayBe(op.getLhs(), isSo) && mayBe(op.getRhs(), isSo); };
  if (bothMayBe(hasRoot))
    return Halide::strict_float(x[0] * x[1]);
  if (!bothMayBe(isSmallNatural))
    return x[0] * x[1];
  return Halide::reinterpret(x[0].type(), Halide::reinterpret(x[0].type().with_code(halide_type_int), x[0])) * x[1];
}

static Expr translateOp(Operation *op, const Exprs &operands) {
  const Exprs x = isa<arith::MaxSIOp, arith::MinSIOp, arith::CmpIOp>(op) ? hideCompared(op, operands) : operands;
  Halide::Type type = op->getNumResults() == 1 ? elementType(op->getResult(0).getType()) : Halide::Handle();
  if (type.is_handle())
    return Expr();
  return llvm::TypeSwitch<Operation *, Expr>(op)
      .Case([](arith::ConstantOp c) { return constant(c); })
      .Case<arith::AddFOp, arith::AddIOp>([&](auto) { return x[0] + x[1]; })
      .Case<arith::SubFOp, arith::SubIOp>([&](auto) { return x[0] - x[1]; })
      .Case([&](arith::MulFOp o) { return multiply(o, x); })
      .Case([&](arith::MulIOp) { return x[0] * x[1]; })
      .Case([&](arith::DivFOp) { return x[0] / x[1]; })
      .Case([&](arith::NegFOp) { return -x[0]; })
      .Case([&](arith::MaximumFOp) { return maximum(x[0], x[1]); })
      .Case([&](arith::MaxNumFOp) { return Halide::max(x[0], x[1]); })
      .Case([&](arith::MinimumFOp) { return minimum(x[0], x[1]); })
      .Case([&](arith::MinNumFOp) { return Halide::min(x[0], x[1]); })
      .Case([&](arith::MaxSIOp) { return Halide::max(x[0], x[1]); })
      .Case([&](arith::MinSIOp) { return Halide::min(x[0], x[1]); })
      .Case([&](arith::DivSIOp o) { return divide(x[0], x[1], o.getType().isIndex()); })
      .Case([&](arith::RemSIOp) { return Halide::mod_round_to_zero(x[0], divisor(x[1])); })
      .Case([&](arith::FloorDivSIOp) { return floorDivide(x[0], x[1]); })
      .Case([&](arith::CeilDivSIOp) { return -floorDivide(-x[0], x[1]); })
      .Case([&](arith::DivUIOp) { return Halide::cast(type, toUnsigned(x[0]) / toUnsigned(divisor(x[1]))); })
      .Case([&](arith::RemUIOp) { return Halide::cast(type, toUnsigned(x[0]) % toUnsigned(divisor(x[1]))); })
      .Case<arith::AndIOp, arith::OrIOp, arith::XOrIOp>([&](auto o) { return logical(o, x[0], x[1]); })
      .Case([&](arith::ShLIOp) { return x[0] << toUnsigned(x[1]); })
      .Case([&](arith::ShRSIOp) { return x[0] >> toUnsigned(x[1]); })
      .Case([&](arith::ShRUIOp) { return Halide::cast(type, toUnsigned(x[0]) >> toUnsigned(x[1])); })
      .Case([&](arith::CmpFOp o) { return compare(o.getPredicate(), x[0], x[1]); })
      .Case([&](arith::CmpIOp o) { return compare(o.getPredicate(), x[0], x[1]); })
      .Case([&](arith::SelectOp) { return choose(x[0], x[1], x[2]); })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return Halide::cast(type, x[0]); })
      .Case([&](arith::FPToSIOp) { return castToSigned(x[0], type); })
      .Case([&](arith::IndexCastOp o) { return o.getType().isIndex() ? toIndex(x[0]) : extend(x[0], type, true); })
      .Case<arith::ExtSIOp, arith::SIToFPOp>([&](auto) { return extend(x[0], type, true); })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](auto) { return extend(x[0], type, false); })
      .Case([&](arith::UIToFPOp) {
        return x[0].type().is_bool() ? extend(x[0], type, false) : Halide::cast(type, toUnsigned(x[0]));
      })
      .Case([&](arith::TruncIOp) { return type.is_bool() ? (x[0] & 1) != 0 : Halide::cast(type, x[0]); })
      .Case([&](arith::BitcastOp) { return Halide::reinterpret(type, x[0]); })
      .Case([&](math::FmaOp) { return x[0] * x[1] + x[2]; })
      .Case<math::AbsFOp, math::AbsIOp>([&](auto) { return Halide::cast(type, Halide::abs(x[0])); })
      .Case([&](math::SqrtOp) { return Halide::sqrt(x[0]); })
      .Case([&](math::RsqrtOp) { return 1 / Halide::sqrt(x[0]); })
      .Case([&](math::FloorOp) { return Halide::floor(x[0]); })
      .Case([&](math::CeilOp) { return Halide::ceil(x[0]); })
      .Case([&](math::TruncOp) { return Halide::trunc(x[0]); })
      .Case([&](math::RoundEvenOp) { return Halide::round(x[0]); })
      .Case([&](math::RoundOp) { return roundAwayFromZero(x[0]); })
      .Case([&](math::ExpOp) { return Halide::exp(x[0]); })
      .Case([&](math::Exp2Op) { return Halide::exp(x[0] * Halide::Internal::make_const(type, 0.693147180559945309)); })
      .Case([&](math::LogOp) { return Halide::log(x[0]); })
      .Case([&](math::TanhOp) { return Halide::tanh(x[0]); })
      .Case([&](math::ErfOp) { return Halide::erf(x[0]); })
      .Case([&](math::SinOp) { return Halide::sin(x[0]); })
      .Case([&](math::CosOp) { return Halide::cos(x[0]); })
      .Case([&](math::PowFOp) { return Halide::pow(x[0], x[1]); })
      .Default([](Operation *) { return Expr(); });
}

/// Whether the op is x - x, x / x, 0 * x or 0 / x, which Halide takes for a number whatever x is, or x / 0, which is
/// NaN or infinite. LLVM does not store what is known to be NaN at compile time, or is computed from that.
static bool cancels(Operation *op, const Exprs &x) {
  if (isa<arith::MulFOp, arith::DivFOp>(op) && llvm::any_of(x, Halide::Internal::is_const_zero))
    return true;
  return isa<arith::SubFOp, arith::DivFOp>(op) && Halide::Internal::graph_equal(x[0], x[1]);
}

/// Returns a <= b for floats, false for NaN: Halide would compute !(b < a).
static Expr isAtMost(const Expr &a, const Expr &b) {
  return Halide::strict_float(a < b) || Halide::strict_float(a == b);
}

Expr translateScalarOp(Operation *op, const Exprs &operands, bool isStrict) {
  if (auto comparison = dyn_cast<arith::CmpFOp>(op); comparison && isStrict) {
    if (comparison.getPredicate() == arith::CmpFPredicate::OLE)
      return isAtMost(operands[0], operands[1]);
    if (comparison.getPredicate() == arith::CmpFPredicate::OGE)
      return isAtMost(operands[1], operands[0]);
  }
  if (wraps(op))
    return toSigned(translateOp(op, {toUnsigned(operands[0]), toUnsigned(operands[1])}));
  Expr result = translateOp(op, operands);
  if (isa<arith::ConstantOp>(op)) // left plain, so that it is recognised as a constant
    return result;
  bool isOfFloats = result.defined() && (result.type().is_float() || isa<arith::CmpFOp>(op));
  return isOfFloats && (isStrict || cancels(op, operands)) ? Halide::strict_float(result) : result;
}

} // namespace kiln::halide
