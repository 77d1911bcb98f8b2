// SPDX-License-Identifier: Apache-2.0
//
// Functions of the math library as branch-free f32 arithmetic that a target vectorises. The polynomials are minimax
// fits in f64 (least squares reweighted towards equal errors, tests/targets/fit_math.py; those of erf are rounded so
// that gelu errs by less than 1e-6 anywhere below 0); the errors below are the largest ones measured in f32 against
// libm in f64 over dense samples (tests/targets/math_test.cpp).
//
//   exp    3e-7 relative; 0 below -87, +infinity where it overflows        exp2   3e-7 relative; 0 below -125
//          with kiln.nonpositive, for arguments that are never above 0: 3e-7 + 1e-7 |x| relative, with fewer steps;
//          exp2 with that: 3e-7 relative, with fewer steps
//   log    2e-7 relative or absolute; log(0) = -infinity                   log1p  2e-7 relative
//   tanh   4e-7 relative; +-1 beyond 9
//   erf    5e-7 relative; +-1 beyond 3.6; with kiln.nonnegative, for arguments that are never below 0, with fewer steps
//   sin, cos  1e-7 absolute up to 1e4, growing with the argument beyond
//
// NaN goes through all of them. Subtractions that must not be contracted or reassociated carry the attribute
// kiln.strict. An op whose result is an exponential of the difference of two inputs is marked by kiln.exponential
// before that can no longer be seen.
#include "targets/passes/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

namespace mlir::kiln {

#define GEN_PASS_DEF_EXPANDMATH
#include "targets/passes/Passes.h.inc"

namespace {

/// Builds scalar f32 and i32 arithmetic.
class Expander {
public:
  Expander(OpBuilder &builder, Location loc) : b(loc, builder) {}

  Value exp(Value x) {
    // e^x = 2^n * e^r with |r| <= ln(2) / 2. Twice e^r times 2^(n - 1), which is representable up to overflow.
    Rounded n = round(strictMul(atMost(x, 89.0), constant(log2OfE)));
    Value r = strictSub(strictSub(x, strictMul(n.number, constant(0.693359375))),
                        strictMul(n.number, constant(-2.12194440e-4)));
    Value twice = polynomial(r, {2.000000238418579, 1.9999994039535522, 0.9999776482582092, 0.3333517014980316,
                                 0.08383369445800781, 0.01659488119184971});
    return zeroFrom(x, 0xc2ae0000, mul(twice, n.halfPower));
  }

  Value expOfNonpositive(Value x) {
    // The product's rounding error counts by its size: no matter for what is small beside e^0.
    Value scaled = strictMul(x, constant(log2OfE));
    Rounded n = round(scaled);
    return zeroBelow(x, -87.0, mul(twicePowerOfTwo(strictSub(scaled, n.number)), n.halfPower));
  }

  Value exp2(Value x) {
    Rounded n = round(atMost(x, 129.0));
    return zeroFrom(x, 0xc2fa0000, mul(twicePowerOfTwo(strictSub(x, n.number)), n.halfPower));
  }

  Value exp2OfNonpositive(Value x) {
    Rounded n = round(x);
    return zeroBelow(x, -125.0, mul(twicePowerOfTwo(strictSub(x, n.number)), n.halfPower));
  }

  Value log(Value x) {
    // x = 2^e * m with m in [sqrt(1/2), sqrt(2)). Subnormal numbers count as the smallest normal one.
    Value bits = toBits(arith::MaximumFOp::create(b, x, constant(1.17549435e-38)));
    Value offset = arith::SubIOp::create(b, bits, integer(0x3f3504f3));
    Value exponent = arith::ShRSIOp::create(b, offset, integer(23));
    Value mantissa = arith::SubIOp::create(b, bits, Value(arith::ShLIOp::create(b, exponent, integer(23))));
    Value f = strictSub(toFloat(mantissa), constant(1.0)), e = arith::SIToFPOp::create(b, b.getF32Type(), exponent);
    Value tail = polynomial(f, {0.3333333134651184, -0.250008225440979, 0.20001226663589478, -0.16623356938362122,
                                0.14201761782169342, -0.131601944565773, 0.12761549651622772, -0.07634429633617401});
    Value square = mul(f, f);
    Value low = math::FmaOp::create(b, e, constant(-2.12194440e-4), mul(mul(square, f), tail));
    low = math::FmaOp::create(b, square, constant(-0.5), low);
    Value result = math::FmaOp::create(b, e, constant(0.693359375), Value(arith::AddFOp::create(b, f, low)));
    // 0, negative numbers, infinity and NaN are told apart and answered as integers, which no assumption about floats
    // touches.
    Value xBits = toBits(x), resultBits = toBits(result);
    Value isSpecial = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, xBits, integer(0x7f800000));
    Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, xBits, integer(0));
    Value isZero = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                         Value(arith::AndIOp::create(b, xBits, integer(0x7fffffff))), integer(0));
    resultBits = select(isSpecial, xBits, resultBits);
    resultBits = select(isNegative, integer(0x7fc00000), resultBits);
    return toFloat(select(isZero, integer(0xff800000), resultBits));
  }

  Value log1p(Value x) {
    // log(u) for u = 1 + x as rounded, and the first order in what the rounding lost.
    Value u = strictAdd(x, constant(1.0));
    Value lost = strictSub(x, strictSub(u, constant(1.0)));
    Value logOfU = log(u);
    Value corrected = arith::AddFOp::create(b, logOfU, Value(arith::DivFOp::create(b, lost, u)));
    Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, toBits(u), integer(0x7f800000));
    Value isPositive = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, toBits(u), integer(0));
    Value isRegular = arith::AndIOp::create(b, isFinite, isPositive);
    return toFloat(select(isRegular, toBits(corrected), toBits(logOfU)));
  }

  Value tanh(Value x) {
    Value u = square(x);
    Value p = polynomial(u, {1.0, 0.13680855929851532, 0.0038695072289556265, 2.8031297915731557e-05,
                             3.0642500092881164e-08, -1.224622833695399e-11});
    Value q =
        polynomial(u, {1.0, 0.4701418876647949, 0.027250153943896294, 0.0003940712194889784, 1.289034230467223e-06});
    return saturated(x, 9.0, arith::DivFOp::create(b, mul(x, p), q));
  }

  Value erf(Value x, bool isNonnegative) {
    Value u = square(x);
    Value p = polynomial(
        u, {1.1283791065216064, 0.2563399076461792, 0.05895068123936653, 0.006027441471815109, 0.00022918182366993278});
    Value q = polynomial(u, {1.0, 0.5605055093765259, 0.13909636437892914, 0.019430210813879967, 0.0015243665548041463,
                             1.4359551641973667e-05});
    Value inner = arith::DivFOp::create(b, mul(x, p), q);
    return isNonnegative ? oneAbove(x, 3.6, inner) : saturated(x, 3.6f, inner);
  }

  /// sin for shift 0, cos for shift 1: sin(x + shift * pi / 2).
  Value sine(Value x, int32_t shift) {
    // x = n * pi / 2 + r with |r| <= pi / 4; pi / 2 in three parts, the first two of few enough bits for exact
    // products.
    Value n = roundEven(mul(x, constant(0.636619772367581343)));
    Value r = strictSub(x, strictMul(n, constant(1.5703125)));
    r = strictSub(r, strictMul(n, constant(4.837512969970703125e-4)));
    r = strictSub(r, strictMul(n, constant(7.549789948768648e-8)));
    Value u = mul(r, r);
    Value sin = math::FmaOp::create(
        b, mul(u, r), polynomial(u, {-0.16666655242443085, 0.008332155644893646, -0.0001951463200384751}), r);
    Value cos = polynomial(u, {1.0, -0.5, 0.04166664555668831, -0.0013887309469282627, 2.443241282890085e-05});
    Value quadrant = arith::AddIOp::create(b, Value(arith::FPToSIOp::create(b, b.getI32Type(), n)), integer(shift));
    Value isOdd = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                        Value(arith::AndIOp::create(b, quadrant, integer(1))), integer(0));
    Value sign = arith::ShLIOp::create(b, Value(arith::AndIOp::create(b, quadrant, integer(2))), integer(30));
    return toFloat(arith::XOrIOp::create(b, toBits(select(isOdd, cos, sin)), sign));
  }

private:
  Value constant(double value) { return arith::ConstantOp::create(b, b.getF32FloatAttr(float(value))); }
  Value integer(uint32_t value) { return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(value))); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  Value roundEven(Value x) { return math::RoundEvenOp::create(b, x); }
  Value toBits(Value x) { return arith::BitcastOp::create(b, b.getI32Type(), x); }
  Value toFloat(Value x) { return arith::BitcastOp::create(b, b.getF32Type(), x); }

  template <typename Op> Value strict(Value x, Value y) {
    auto op = Op::create(b, x, y);
    op->setAttr(strictAttrName, b.getUnitAttr());
    return op;
  }
  Value strictAdd(Value x, Value y) { return strict<arith::AddFOp>(x, y); }
  Value strictSub(Value x, Value y) { return strict<arith::SubFOp>(x, y); }
  Value strictMul(Value x, Value y) { return strict<arith::MulFOp>(x, y); }

  /// Strict: of a factor in x a code generator would make one more product in every step of a polynomial.
  Value square(Value x) { return strictMul(x, x); }

  Value atMost(Value x, double high) { return arith::MinimumFOp::create(b, x, constant(high)); }

  /// The whole number n nearest to some x, and 2^(n - 1) for n from -126 (there 0) to 129 (there infinity).
  struct Rounded {
    Value number, halfPower;
  };

  /// For |x| up to 2^22: the sum with 1.5 * 2^23 has no bits after the point, and n in its lowest bits; 126 more and
  /// they are the exponent of 2^(n - 1). Other x give some numbers.
  Rounded round(Value x) {
    Value shift = constant(12582912.0 + 126.0), sum = strictAdd(x, shift);
    return {strictSub(sum, shift), toFloat(arith::ShLIOp::create(b, toBits(sum), integer(23)))};
  }

  /// 2 * 2^f for |f| <= 1/2.
  Value twicePowerOfTwo(Value f) {
    return polynomial(f, {2.000000238418579, 1.386293888092041, 0.4804423153400421, 0.11101431399583817,
                          0.019351540133357048, 0.0026552476920187473});
  }

  // Targets may assume that no float is NaN; these choices are of integers, so that NaN takes its way all the same.

  /// 0 for an x below `least`, by one comparison, which is false for NaN; else `result`.
  Value zeroBelow(Value x, double least, Value result) {
    Value isTiny = strictLess(x, constant(least));
    return toFloat(select(isTiny, integer(0), toBits(result)));
  }

  /// 1 for an x above `limit`; else `result`.
  Value oneAbove(Value x, double limit, Value result) {
    Value isLarge = strictLess(constant(limit), x);
    return toFloat(select(isLarge, integer(0x3f800000), toBits(result)));
  }

  /// False for NaN.
  Value strictLess(Value x, Value y) {
    auto compare = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
    compare->setAttr(strictAttrName, b.getUnitAttr());
    return compare;
  }

  /// 0 for an x from -infinity up to, but without, the negative number with these bits; `result` for any other.
  Value zeroFrom(Value x, uint32_t bits, Value result) {
    Value distance = arith::SubIOp::create(b, toBits(x), integer(bits + 1));
    Value isBelow = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, distance, integer(0xff800000 - (bits + 1)));
    return toFloat(select(isBelow, integer(0), toBits(result)));
  }

  /// `value`, but exactly +-1 for an x beyond +-limit, so that gelu of a large negative number is 0.
  Value saturated(Value x, float limit, Value value) {
    uint32_t first = llvm::bit_cast<uint32_t>(limit) + 1;
    Value bits = toBits(x), magnitude = arith::AndIOp::create(b, bits, integer(0x7fffffff));
    Value sign = arith::AndIOp::create(b, bits, integer(0x80000000));
    Value distance = arith::SubIOp::create(b, magnitude, integer(first));
    Value isFar = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, distance, integer(0x7f800000 - first));
    Value one = arith::OrIOp::create(b, sign, integer(0x3f800000));
    return toFloat(select(isFar, one, toBits(value)));
  }

  /// Horner's rule; coefficients from that of x^0 on.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value result = constant(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      result = math::FmaOp::create(b, result, x, constant(coefficient));
    return result;
  }

  static constexpr double log2OfE = 1.44269504088896341;

  ImplicitLocOpBuilder b;
};

/// Marks an op that yields the exponential of the difference of two of its inputs.
void markExponential(linalg::GenericOp op) {
  Operation *exponential = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(exponential))
    return;
  auto difference = exponential->getOperand(0).getDefiningOp<arith::SubFOp>();
  if (!difference)
    return;
  auto minuend = dyn_cast<BlockArgument>(difference.getLhs()),
       subtrahend = dyn_cast<BlockArgument>(difference.getRhs());
  if (!minuend || !subtrahend || minuend.getOwner() != op.getBlock() || subtrahend.getOwner() != op.getBlock())
    return;
  Builder b(op.getContext());
  op->setAttr(exponentialAttrName, b.getDenseI64ArrayAttr({minuend.getArgNumber(), subtrahend.getArgNumber()}));
  op->setAttr(exponentialBaseAttrName,
              b.getF32FloatAttr(isa<math::ExpOp>(exponential) ? float(llvm::numbers::log2e) : 1.0f));
}

/// What replaces the result of an op that isExpanded().
Value expand(Operation *op) {
  OpBuilder builder(op);
  Expander expander(builder, op->getLoc());
  Value x = op->getOperand(0);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) {
        return op->hasAttr(nonpositiveAttrName) ? expander.expOfNonpositive(x) : expander.exp(x);
      })
      .Case([&](math::Exp2Op) {
        return op->hasAttr(nonpositiveAttrName) ? expander.exp2OfNonpositive(x) : expander.exp2(x);
      })
      .Case([&](math::LogOp) { return expander.log(x); })
      .Case([&](math::Log1pOp) { return expander.log1p(x); })
      .Case([&](math::TanhOp) { return expander.tanh(x); })
      .Case([&](math::ErfOp) { return expander.erf(x, op->hasAttr(nonnegativeAttrName)); })
      .Case([&](math::SinOp) { return expander.sine(x, 0); })
      .Case([&](math::CosOp) { return expander.sine(x, 1); });
}

bool isExpanded(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log1pOp, math::TanhOp, math::ErfOp, math::SinOp,
             math::CosOp>(op);
}

class ExpandMath : public impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    getOperation().walk(markExponential);
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isExpanded(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (!op->getResult(0).getType().isF32()) {
        op->emitOpError() << "has a polynomial for f32, got " << op->getResult(0).getType();
        return signalPassFailure();
      }
      op->getResult(0).replaceAllUsesWith(expand(op));
      op->erase();
    }
  }
};

} // namespace

void addExpandMath(OpPassManager &passes) { passes.addNestedPass<func::FuncOp>(createExpandMath()); }

} // namespace mlir::kiln
