// SPDX-License-Identifier: Apache-2.0
//
// Functions of the math library as branch-free f32 arithmetic that a target vectorises. The polynomials are minimax
// fits in f64 (least squares reweighted towards equal errors, tests/targets/fit_math.py; those of erf are rounded so
// that gelu errs by less than 1e-6 anywhere below 0, with and without fused multiply-adds). The errors below are the
// largest ones measured in f32 against libm in f64: in ulp over all 2^32 arguments (tests/ops/functions_test.cpp), the
// others over dense samples (tests/targets/math_test.cpp).
//
//   exp    1.01 ulp, subnormal results included; 1 at 0, +infinity where the result overflows
//          with kiln.nonpositive, for arguments that are never above 0: 3e-7 + 1e-7 |x| relative, 0 below -87, with
//          fewer steps. Softmax and attention take it.
//   expm1  1.6 ulp; 0 at 0
//   exp2   3e-7 relative; 0 below -125; with kiln.nonpositive as precise, with fewer steps
//   log    1 ulp, of subnormal arguments, too; 0 at 1, -infinity at 0      log1p  2e-7 relative
//   tanh   3 ulp; x for the smallest x, +-1 for large ones
//   erf    5e-7 relative; +-1 beyond 3.6; with kiln.nonnegative, for arguments that are never below 0, with fewer steps
//   sin, cos  1.3e-7 absolute for every number; with kiln.reduced_angle, within a quarter of a turn, with fewer steps
//
// NaN goes through all of them. What must not be contracted or reassociated carries the attribute kiln.strict: in exp,
// log and tanh all arithmetic, so that their bits do not depend on the kernel that they are in.
#include "targets/passes/Passes.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/ReducedAngle.h"
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
    // e^x = 2^n * e^r. Two factors make 2^n, so that n may be beyond the exponents of normal numbers; only the second
    // product is rounded, if the result is subnormal. Below -104 e^x is 0.
    Reduced reduced = reduce(limitedForExp(x, -104.0), 254);
    Value power = strictAdd(constant(1.0), reduced.expm1);
    // n + 254 as the sum of two biased exponents; the shift drops what is above them.
    Value low = arith::ShRSIOp::create(b, reduced.biased, integer(1));
    Value high = arith::SubIOp::create(b, reduced.biased, low);
    return strictMul(strictMul(power, ofExponent(low)), ofExponent(high));
  }

  Value expm1(Value x) {
    // With half of 2^n, since n may be 128: e^x - 1 = 2 (2^(n-1) (e^r - 1) + 2^(n-1) - 1/2). Below -25 it is -1.
    Reduced reduced = reduce(limitedForExp(x, -25.0), 126);
    Value half = ofExponent(reduced.biased);
    Value sum = strictFma(half, reduced.expm1, strictSub(half, constant(0.5)));
    return strictAdd(sum, sum);
  }

  Value expOfNonpositive(Value x) {
    // The product's rounding error counts by its size: negligible relative to e^0.
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
    // x = 2^e * m with m in [sqrt(1/2), sqrt(2)); a subnormal x is scaled to a normal number first.
    Value xBits = toBits(x);
    Value isSubnormal = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, xBits, integer(0x00800000));
    Value bits = select(isSubnormal, toBits(strictMul(x, constant(33554432.0))), xBits);
    Value offset = arith::SubIOp::create(b, bits, integer(0x3f3504f3));
    Value exponent = arith::ShRSIOp::create(b, offset, integer(23));
    Value mantissa = arith::SubIOp::create(b, bits, Value(arith::ShLIOp::create(b, exponent, integer(23))));
    exponent = arith::SubIOp::create(b, exponent, select(isSubnormal, integer(25), integer(0)));
    Value f = strictSub(toFloat(mantissa), constant(1.0)), e = arith::SIToFPOp::create(b, b.getF32Type(), exponent);
    Value tail =
        strictPolynomial(f, {0.3333333134651184, -0.250008225440979, 0.20001226663589478, -0.16623356938362122,
                             0.14201761782169342, -0.131601944565773, 0.12761549651622772, -0.07634429633617401});
    Value square = strictMul(f, f);
    Value low = strictFma(e, constant(-2.12194440e-4), strictMul(strictMul(square, f), tail));
    low = strictFma(square, constant(-0.5), low);
    Value result = strictFma(e, constant(0.693359375), strictAdd(f, low));
    // 0, negative numbers, infinity and NaN are told apart and answered as integers, which no assumption about floats
    // touches.
    Value resultBits = toBits(result);
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
    // With s = e^(-2 |x|) - 1, which is precise near 0, too, tanh(|x|) = -s / (s + 2). It is 1 long before the limit.
    Value size = toFloat(arith::AndIOp::create(b, toBits(x), integer(0x7fffffff)));
    Value argument = arith::MaximumFOp::create(b, strictMul(size, constant(-2.0)), constant(-40.0));
    Reduced reduced = reduce(argument, 127);
    Value power = ofExponent(reduced.biased);
    Value s = strictFma(power, reduced.expm1, strictSub(power, constant(1.0)));
    Value quotient = strict<arith::DivFOp>(s, strictAdd(s, constant(2.0)));
    Value magnitude = arith::AndIOp::create(b, toBits(quotient), integer(0x7fffffff));
    Value sign = arith::AndIOp::create(b, toBits(x), integer(0x80000000));
    return toFloat(arith::OrIOp::create(b, magnitude, sign));
  }

  Value erf(Value x, bool isNonnegative) {
    Value u = square(x);
    Value p = polynomial(
        u, {1.128379225730896, 0.2563401162624359, 0.05895064026117325, 0.0060274419374763966, 0.00022918191098142415});
    Value q = polynomial(u, {1.0, 0.560505747795105, 0.13909633457660675, 0.01943020522594452, 0.0015243666712194681,
                             1.435957892681472e-05});
    Value inner = arith::DivFOp::create(b, mul(x, p), q);
    return isNonnegative ? oneAbove(x, 3.6, inner) : saturated(x, 3.6f, inner);
  }

  /// sin for shift 0, cos for shift 1: sin(x + shift * pi / 2).
  Value sine(Value x, int32_t shift) {
    Value bits = toBits(x), size = arith::AndIOp::create(b, bits, integer(0x7fffffff));
    Quarters small = reduceSmallAngle(x), large = reduceLargeAngle(bits, size);
    Value isLarge = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, size, integer(0x46000000)); // 2^13
    Value r = toFloat(select(isLarge, toBits(large.rest), toBits(small.rest)));
    Value quarters = arith::AddIOp::create(b, select(isLarge, large.count, small.count), integer(shift));
    Value isOdd = isSet(quarters, 1),
          sign = arith::ShLIOp::create(b, arith::AndIOp::create(b, quarters, integer(2)), integer(30));
    Value result = select(isOdd, toBits(reducedCosine(r)), toBits(reducedSine(r)));
    Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, size, integer(0x7f800000));
    return toFloat(select(isFinite, Value(arith::XOrIOp::create(b, result, sign)), integer(0x7fc00000)));
  }

  /// For |x| <= pi / 4.
  Value reducedSine(Value x) {
    Value u = square(x);
    return strictFma(strictMul(u, x),
                     strictPolynomial(u, {-0.16666655242443085, 0.008332155644893646, -0.0001951463200384751}), x);
  }
  Value reducedCosine(Value x) {
    return strictPolynomial(square(x), {1.0, -0.5, 0.04166664555668831, -0.0013887309469282627, 2.443241282890085e-05});
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

  Value strictFma(Value x, Value y, Value z) {
    auto op = math::FmaOp::create(b, x, y, z);
    op->setAttr(strictAttrName, b.getUnitAttr());
    return op;
  }

  /// x = n * ln(2) + r with |r| <= ln(2) / 2: n + bias, in the lowest nine bits, and e^r - 1 to half an ulp of e^r.
  struct Reduced {
    Value biased, expm1;
  };

  /// For |x| up to 2^14. ln(2) is in two parts, of which the first has few enough bits for exact products. The sum with
  /// 1.5 * 2^23 has no bits after the point, and n in its lowest ones.
  Reduced reduce(Value x, int bias) {
    Value shift = constant(12582912.0 + bias), sum = strictAdd(strictMul(x, constant(log2OfE)), shift);
    Value number = strictSub(sum, shift);
    Value r = strictFma(number, constant(2.12194440e-4), strictFma(number, constant(-0.693359375), x));
    Value tail = strictPolynomial(
        r, {0.4999999403953552, 0.1666651964187622, 0.04166840761899948, 0.008368919603526592, 0.0013814177364110947});
    return {toBits(sum), strictFma(strictMul(r, r), tail, r)};
  }

  /// x from `least` to 89, where e^x overflows; NaN for NaN.
  Value limitedForExp(Value x, double least) {
    Value isAbove = strictLess(constant(89.0), x); // false for NaN
    Value below = toFloat(select(isAbove, toBits(constant(89.0)), toBits(x)));
    return arith::MaximumFOp::create(b, below, constant(least));
  }

  /// x = count * pi / 2 + rest, modulo 2 pi, with |rest| <= pi / 4.
  struct Quarters {
    Value count, rest;
  };

  /// For |x| below 2^13. pi / 2 is in three parts, the first two of few enough bits for exact products.
  Quarters reduceSmallAngle(Value x) {
    Value n = roundEven(mul(x, constant(0.636619772367581343)));
    Value r = strictSub(x, strictMul(n, constant(1.5703125)));
    r = strictSub(r, strictMul(n, constant(4.837512969970703125e-4)));
    r = strictSub(r, strictMul(n, constant(7.549789948768648e-8)));
    return {arith::FPToSIOp::create(b, b.getI32Type(), n), r};
  }

  /// For |x| from 2^13 on: the mantissa, an integer, times the bits of 1 / (2 pi) that matter at its exponent gives the
  /// angle in units of 2^-32 turns, where whole turns wrap (Payne, Hanek 1983). 32 more bits count to less than a unit.
  Quarters reduceLargeAngle(Value bits, Value size) {
    const uint32_t words[] = {0, 0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410};
    Value first = arith::SubIOp::create(b, shiftRight(size, 23), integer(118)); // bit of the words
    Value word = shiftRight(first, 5), offset = arith::AndIOp::create(b, first, integer(31));
    auto wordAt = [&](unsigned fromLast) {
      Value result = integer(words[fromLast]);
      for (uint32_t i = 1; i + fromLast < std::size(words); ++i) {
        Value isThis = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, word, integer(i));
        result = select(isThis, integer(words[i + fromLast]), result);
      }
      return result;
    };
    Value rest = arith::SubIOp::create(b, integer(31), offset);
    auto window = [&](Value high, Value low) -> Value {
      Value left = arith::ShLIOp::create(b, high, offset);
      return arith::OrIOp::create(b, left, Value(arith::ShRUIOp::create(b, shiftRight(low, 1), rest)));
    };
    Value next = wordAt(1), high = window(wordAt(0), next), low = window(next, wordAt(2));
    Value mantissa =
        arith::OrIOp::create(b, Value(arith::AndIOp::create(b, size, integer(0x7fffff))), integer(0x800000));
    Value ofLow = strictMul(strictMul(number(mantissa), number(shiftRight(low, 1))), constant(0x1p-31));
    Value turn = arith::AddIOp::create(b, Value(arith::MulIOp::create(b, mantissa, high)),
                                       Value(arith::FPToSIOp::create(b, b.getI32Type(), ofLow)));
    turn = select(isSet(bits, 0x80000000), Value(arith::SubIOp::create(b, integer(0), turn)), turn);
    // Not two shifts, which a code generator may take for none.
    Value nearest = arith::AddIOp::create(b, turn, integer(0x20000000));
    Value eighth =
        arith::SubIOp::create(b, Value(arith::AndIOp::create(b, nearest, integer(0x3fffffff))), integer(0x20000000));
    Value count = shiftRight(Value(arith::SubIOp::create(b, turn, eighth)), 30);
    return {count, strictMul(number(eighth), constant(6.28318530717958647692 * 0x1p-32))};
  }

  Value number(Value x) { return arith::SIToFPOp::create(b, b.getF32Type(), x); }
  Value shiftRight(Value x, uint32_t by) { return arith::ShRUIOp::create(b, x, integer(by)); }
  Value isSet(Value bits, uint32_t mask) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, Value(arith::AndIOp::create(b, bits, integer(mask))),
                                 integer(0));
  }

  /// The power of two whose biased exponent is in the lowest nine bits, from 1 to 254.
  Value ofExponent(Value biased) { return toFloat(arith::ShLIOp::create(b, biased, integer(23))); }

  Value atMost(Value x, double high) { return arith::MinNumFOp::create(b, x, constant(high)); }

  /// The integer n nearest to some x, and 2^(n - 1) for n from -126 (there 0) to 129 (there infinity).
  struct Rounded {
    Value number, halfPower;
  };

  /// For |x| up to 2^22: the sum with 1.5 * 2^23 has no bits after the point, and n in its lowest bits; 126 more and
  /// they are the exponent of 2^(n - 1). Other x give some numbers.
  Rounded round(Value x) {
    Value shift = constant(12582912.0 + 126.0), sum = strictAdd(x, shift);
    return {strictSub(sum, shift), toFloat(arith::ShLIOp::create(b, toBits(sum), integer(23)))};
  }

  /// 2 * 2^f for |f| <= 1/2; exact for 0.
  Value twicePowerOfTwo(Value f) {
    return polynomial(f, {2.0, 1.3862940073013306, 0.4804447889328003, 0.111014723777771, 0.019343450665473938,
                          0.002652890281751752});
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

  Value strictPolynomial(Value x, ArrayRef<double> coefficients) {
    Value result = constant(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      result = strictFma(result, x, constant(coefficient));
    return result;
  }

  static constexpr double log2OfE = 1.44269504088896341;

  ImplicitLocOpBuilder b;
};

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
      .Case([&](math::ExpM1Op) { return expander.expm1(x); })
      .Case([&](math::LogOp) { return expander.log(x); })
      .Case([&](math::Log1pOp) { return expander.log1p(x); })
      .Case([&](math::TanhOp) { return expander.tanh(x); })
      .Case([&](math::ErfOp) { return expander.erf(x, op->hasAttr(nonnegativeAttrName)); })
      .Case([&](math::SinOp) {
        return op->hasAttr(reducedAngleAttrName) ? expander.reducedSine(x) : expander.sine(x, 0);
      })
      .Case([&](math::CosOp) {
        return op->hasAttr(reducedAngleAttrName) ? expander.reducedCosine(x) : expander.sine(x, 1);
      });
}

bool isExpanded(Operation *op) {
  return isa<math::ExpOp, math::ExpM1Op, math::Exp2Op, math::LogOp, math::Log1pOp, math::TanhOp, math::ErfOp,
             math::SinOp, math::CosOp>(op);
}

class ExpandMath : public impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isExpanded(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (!op->getResult(0).getType().isF32()) {
        op->emitOpError() << "has no polynomial for its type; expected f32, got " << op->getResult(0).getType();
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
