// SPDX-License-Identifier: Apache-2.0
//
// The semantics of each op of arith and math. Functions are those of the library in f64, rounded to f32. A division by
// zero of integers is 0, as everywhere in Kiln.
#include "compiler/verify/ScalarOps.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/dialect/ElementTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::verify {
namespace {

using Function = ScalarProgram::Function;

Cell ofNumber(double value) {
  Cell cell;
  cell.integer = 0;
  cell.number = static_cast<float>(value);
  return cell;
}
Cell ofInteger(std::int64_t value) {
  Cell cell;
  cell.integer = value;
  return cell;
}
Cell wrapped(std::uint64_t value) { return ofInteger(static_cast<std::int64_t>(value)); }
std::uint64_t bits(Cell cell) { return static_cast<std::uint64_t>(cell.integer); }

std::int64_t divide(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : b == -1 ? static_cast<std::int64_t>(-static_cast<std::uint64_t>(a)) : a / b;
}
std::int64_t remainder(std::int64_t a, std::int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
std::int64_t floorDivide(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : divide(a, b) - (remainder(a, b) != 0 && (a < 0) != (b < 0));
}

/// Return NaN if an operand is NaN.
float larger(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::max(a, b);
}
float smaller(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::min(a, b);
}

Cell toInteger32(Cell a, Cell, Cell) {
  const bool fits = a.number >= -0x1p31F && a.number < 0x1p31F;
  return ofInteger(fits ? static_cast<std::int64_t>(a.number) : std::numeric_limits<std::int32_t>::min());
}
Cell toBits(Cell a, Cell, Cell) {
  std::int32_t result;
  std::memcpy(&result, &a.number, sizeof(result));
  return ofInteger(result);
}
Cell fromBits(Cell a, Cell, Cell) {
  const auto low = static_cast<std::uint32_t>(a.integer);
  float result;
  std::memcpy(&result, &low, sizeof(result));
  Cell cell;
  cell.integer = 0;
  cell.number = result;
  return cell;
}

template <ElementType E> Cell roundToHalf(Cell a, Cell, Cell) { return ofNumber(interpreter::roundTo(E, a.number)); }
template <double (*F)(double)> Cell apply(Cell a, Cell, Cell) { return ofNumber(F(a.number)); }
double inverseRoot(double x) { return 1 / std::sqrt(x); }

Function compareNumbers(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return [](Cell, Cell, Cell) { return ofInteger(0); };
  case P::AlwaysTrue:
    return [](Cell, Cell, Cell) { return ofInteger(1); };
  case P::OEQ:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.number == b.number); };
  case P::OGT:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.number > b.number); };
  case P::OGE:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.number >= b.number); };
  case P::OLT:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.number < b.number); };
  case P::OLE:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.number <= b.number); };
  case P::ONE:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.number < b.number || a.number > b.number); };
  case P::ORD:
    return [](Cell a, Cell b, Cell) { return ofInteger(!std::isunordered(a.number, b.number)); };
  case P::UEQ:
    return [](Cell a, Cell b, Cell) { return ofInteger(!(a.number < b.number || a.number > b.number)); };
  case P::UGT:
    return [](Cell a, Cell b, Cell) { return ofInteger(!(a.number <= b.number)); };
  case P::UGE:
    return [](Cell a, Cell b, Cell) { return ofInteger(!(a.number < b.number)); };
  case P::ULT:
    return [](Cell a, Cell b, Cell) { return ofInteger(!(a.number >= b.number)); };
  case P::ULE:
    return [](Cell a, Cell b, Cell) { return ofInteger(!(a.number > b.number)); };
  case P::UNE:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.number != b.number); };
  case P::UNO:
    return [](Cell a, Cell b, Cell) { return ofInteger(std::isunordered(a.number, b.number)); };
  }
  return nullptr;
}

/// Sign extension keeps the order of unsigned numbers, too.
Function compareIntegers(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.integer == b.integer); };
  case P::ne:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.integer != b.integer); };
  case P::slt:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.integer < b.integer); };
  case P::sle:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.integer <= b.integer); };
  case P::sgt:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.integer > b.integer); };
  case P::sge:
    return [](Cell a, Cell b, Cell) { return ofInteger(a.integer >= b.integer); };
  case P::ult:
    return [](Cell a, Cell b, Cell) { return ofInteger(bits(a) < bits(b)); };
  case P::ule:
    return [](Cell a, Cell b, Cell) { return ofInteger(bits(a) <= bits(b)); };
  case P::ugt:
    return [](Cell a, Cell b, Cell) { return ofInteger(bits(a) > bits(b)); };
  case P::uge:
    return [](Cell a, Cell b, Cell) { return ofInteger(bits(a) >= bits(b)); };
  }
  return nullptr;
}

Function numberFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case([](arith::AddFOp) { return [](Cell a, Cell b, Cell) { return ofNumber(a.number + b.number); }; })
      .Case([](arith::SubFOp) { return [](Cell a, Cell b, Cell) { return ofNumber(a.number - b.number); }; })
      .Case([](arith::MulFOp) { return [](Cell a, Cell b, Cell) { return ofNumber(a.number * b.number); }; })
      .Case([](arith::DivFOp) { return [](Cell a, Cell b, Cell) { return ofNumber(a.number / b.number); }; })
      .Case([](arith::NegFOp) { return [](Cell a, Cell, Cell) { return ofNumber(-a.number); }; })
      .Case([](arith::MaximumFOp) { return [](Cell a, Cell b, Cell) { return ofNumber(larger(a.number, b.number)); }; })
      .Case(
          [](arith::MinimumFOp) { return [](Cell a, Cell b, Cell) { return ofNumber(smaller(a.number, b.number)); }; })
      .Case(
          [](arith::MinNumFOp) { return [](Cell a, Cell b, Cell) { return ofNumber(std::fmin(a.number, b.number)); }; })
      .Case([](arith::CmpFOp compare) { return compareNumbers(compare.getPredicate()); })
      .Case([](arith::SIToFPOp) {
        return [](Cell a, Cell, Cell) {
          Cell cell;
          cell.integer = 0;
          cell.number = static_cast<float>(a.integer);
          return cell;
        };
      })
      .Case([](arith::FPToSIOp cast) { return cast.getType().isInteger(32) ? toInteger32 : Function(); })
      .Case([](arith::BitcastOp cast) { return cast.getType().isF32() ? fromBits : toBits; })
      .Case([](math::FmaOp) {
        return [](Cell a, Cell b, Cell c) { return ofNumber(std::fma(a.number, b.number, c.number)); };
      })
      .Case([](math::AbsFOp) -> Function { return apply<std::fabs>; })
      .Case([](math::CeilOp) -> Function { return apply<std::ceil>; })
      .Case([](math::CosOp) -> Function { return apply<std::cos>; })
      .Case([](math::ErfOp) -> Function { return apply<std::erf>; })
      .Case([](math::Exp2Op) -> Function { return apply<std::exp2>; })
      .Case([](math::ExpOp) -> Function { return apply<std::exp>; })
      .Case([](math::ExpM1Op) -> Function { return apply<std::expm1>; })
      .Case([](math::FloorOp) -> Function { return apply<std::floor>; })
      .Case([](math::Log1pOp) -> Function { return apply<std::log1p>; })
      .Case([](math::LogOp) -> Function { return apply<std::log>; })
      .Case([](math::RoundEvenOp) -> Function { return apply<std::nearbyint>; })
      .Case([](math::RoundOp) -> Function { return apply<std::round>; })
      .Case([](math::RsqrtOp) -> Function { return apply<inverseRoot>; })
      .Case([](math::SinOp) -> Function { return apply<std::sin>; })
      .Case([](math::SqrtOp) -> Function { return apply<std::sqrt>; })
      .Case([](math::TanhOp) -> Function { return apply<std::tanh>; })
      .Case([](math::TruncOp) -> Function { return apply<std::trunc>; })
      .Default([](Operation *) { return Function(); });
}

Function integerFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case([](arith::AddIOp) { return [](Cell a, Cell b, Cell) { return wrapped(bits(a) + bits(b)); }; })
      .Case([](arith::SubIOp) { return [](Cell a, Cell b, Cell) { return wrapped(bits(a) - bits(b)); }; })
      .Case([](arith::MulIOp) { return [](Cell a, Cell b, Cell) { return wrapped(bits(a) * bits(b)); }; })
      .Case([](arith::DivSIOp) { return [](Cell a, Cell b, Cell) { return ofInteger(divide(a.integer, b.integer)); }; })
      .Case([](arith::RemSIOp) {
        return [](Cell a, Cell b, Cell) { return ofInteger(remainder(a.integer, b.integer)); };
      })
      .Case([](arith::FloorDivSIOp) {
        return [](Cell a, Cell b, Cell) { return ofInteger(floorDivide(a.integer, b.integer)); };
      })
      .Case(
          [](arith::MaxSIOp) { return [](Cell a, Cell b, Cell) { return ofInteger(std::max(a.integer, b.integer)); }; })
      .Case(
          [](arith::MinSIOp) { return [](Cell a, Cell b, Cell) { return ofInteger(std::min(a.integer, b.integer)); }; })
      .Case([](arith::AndIOp) { return [](Cell a, Cell b, Cell) { return wrapped(bits(a) & bits(b)); }; })
      .Case([](arith::OrIOp) { return [](Cell a, Cell b, Cell) { return wrapped(bits(a) | bits(b)); }; })
      .Case([](arith::XOrIOp) { return [](Cell a, Cell b, Cell) { return wrapped(bits(a) ^ bits(b)); }; })
      .Case([](arith::ShLIOp) { return [](Cell a, Cell b, Cell) { return wrapped(bits(a) << (bits(b) & 63)); }; })
      .Case([](arith::ShRSIOp) { return [](Cell a, Cell b, Cell) { return ofInteger(a.integer >> (bits(b) & 63)); }; })
      .Case([](arith::ShRUIOp shift) {
        return shift.getType().isInteger(32) ? Function([](Cell a, Cell b, Cell) {
          return ofInteger(static_cast<std::uint32_t>(a.integer) >> (bits(b) & 31));
        })
                                             : Function();
      })
      .Case([](arith::CmpIOp compare) { return compareIntegers(compare.getPredicate()); })
      .Case([](arith::SelectOp) { return [](Cell a, Cell b, Cell c) { return a.integer ? b : c; }; })
      .Case<arith::IndexCastOp, arith::ExtUIOp, arith::TruncIOp>([](Operation *cast) -> Function {
        // i1 is 0 or 1; wider types are only held sign-extended.
        if (isa<arith::ExtUIOp>(cast) && !cast->getOperand(0).getType().isInteger(1))
          return nullptr;
        if (cast->getResult(0).getType().isInteger(1))
          return [](Cell a, Cell, Cell) { return ofInteger(a.integer & 1); };
        if (cast->getResult(0).getType().isInteger(8))
          return [](Cell a, Cell, Cell) { return ofInteger(static_cast<std::int8_t>(a.integer)); };
        return [](Cell a, Cell, Cell) { return a; };
      })
      .Case([](arith::ExtSIOp cast) -> Function {
        if (cast.getIn().getType().isInteger(1))
          return [](Cell a, Cell, Cell) { return ofInteger(-a.integer); };
        return [](Cell a, Cell, Cell) { return a; };
      })
      .Default([](Operation *) { return Function(); });
}

/// A 16-bit float is held as the f32 of the same value; no ops other than these two compute with it.
Function halfFloatFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case([](arith::ExtFOp) { return [](Cell a, Cell, Cell) { return a; }; })
      .Case([](arith::TruncFOp cast) {
        return cast.getType().isF16() ? roundToHalf<ElementType::f16> : roundToHalf<ElementType::bf16>;
      })
      .Default([](Operation *) { return Function(); });
}

bool isScalar(Type type) {
  return type.isF32() || type.isIndex() || (mlir::kiln::isElement(type) && !mlir::kiln::isFloatingNumber(type));
}

} // namespace

Function functionOf(Operation *op) {
  if (Function function = halfFloatFunction(op))
    return function;
  Function function = numberFunction(op);
  if (!function)
    function = integerFunction(op);
  const bool isKnown = llvm::all_of(op->getOperandTypes(), isScalar) && llvm::all_of(op->getResultTypes(), isScalar);
  if (!function || !isKnown || op->getNumOperands() > 3 || op->getNumResults() != 1)
    throw std::runtime_error(op->getName().getStringRef().str() + " is not evaluated for its types");
  return function;
}

unsigned unusedBits(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.getWidth() > 1 ? 64 - integer.getWidth() : 0;
}

Cell cellOf(TypedAttr value) {
  if (auto number = dyn_cast<FloatAttr>(value); number && mlir::kiln::isFloatingNumber(number.getType()))
    return ofNumber(number.getValueAsDouble());
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return ofInteger(integer.getType().isInteger(1) ? static_cast<std::int64_t>(!integer.getValue().isZero())
                                                    : integer.getValue().getSExtValue());
  throw std::runtime_error("constant of a kernel: wrong type; expected a float or an integer");
}

Cell evaluateScalar(Operation *op, ArrayRef<Cell> operands) {
  Cell at[3];
  std::copy(operands.begin(), operands.end(), at);
  const Function function = functionOf(op);
  return signExtended(function(at[0], at[1], at[2]), unusedBits(op->getResult(0).getType()));
}

} // namespace kiln::verify
