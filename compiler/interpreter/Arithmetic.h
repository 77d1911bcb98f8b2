// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of values with error bounds: a running error analysis (Wilkinson; Higham 2002, section 3.3). Operands may
// deviate by their error in any direction, and an implementation adds its own rounding errors.
//
// The bounds assume that a correct implementation
// - adds in any order, with or without fused multiply-adds, and may divide by multiplying with a reciprocal;
// - computes exp and log to 2 ulp, including subnormal results, and other functions to a few 1e-7 (`function`);
// - may otherwise flush numbers below the smallest normal one to 0, in operands and results (`tiny`).
// Intermediate results must not overflow where the terms themselves do not.
//
// Results of f16 and bf16 are computed in f32, and may then be rounded once to nearest (EvaluateOp.cpp).
//
// Values that reach the largest number of the type are undetermined. Infinities and NaNs that result from infinities
// and NaNs are exact where every order and every fusion gives the same result.
#pragma once

#include <cmath>
#include <cstdint>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

inline Value exact(double value) { return {value, 0}; }

/// Returns the largest finite number of a floating-point element type.
double largestOf(ElementType element);

/// Returns the value of an f16 or bf16 that was computed in f32 and that an implementation may or may not round. An
/// exact value that the type represents is unchanged.
Value rounded(ElementType element, Value x);

/// The arithmetic of a floating-point element type; 16-bit floats use that of f32, in which they are computed.
class Arithmetic {
public:
  explicit Arithmetic(ElementType element);

  Value add(Value a, Value b) const;
  Value sub(Value a, Value b) const { return add(a, {-b.value, b.error}); }
  Value mul(Value a, Value b) const;
  Value div(Value a, Value b) const;
  /// NaN if either operand is.
  Value maximum(Value a, Value b) const;
  Value minimum(Value a, Value b) const { return negative(maximum(negative(a), negative(b))); }

  /// Returns a finite result; undetermined if the error is, or if the result may overflow.
  Value settle(double value, double error) const;
  /// Whether intermediate results of this magnitude stay below the largest number.
  bool holds(double magnitude) const { return magnitude < largest; }
  /// Whether the number may be 0, or be flushed to it.
  bool mayBeZero(Value x) const { return !(std::abs(x.value) - x.error >= least); }

  double unit;     // the maximum relative error of one rounding, 2^-24 for f32
  double function; // the maximum relative error of a function
  double tiny;     // an upper bound on the absolute error of flushing to zero
  double least;    // the smallest normal number
  double largest;

private:
  static Value negative(Value x) { return {-x.value, x.error}; }
};

/// Returns the error bound of an element of `sinusoidal`: that of dsl/SPEC.md up to a position of 2^24. Beyond, the
/// digits of the frequency in f64 limit the accuracy, here and in an implementation.
inline double sinusoidalError(std::int64_t position) {
  return std::fmax(2.4e-7, std::fabs(static_cast<double>(position)) * 0x1p-49);
}

/// Returns a bound on the number of roundings of a sum of n terms. Any order has at most n - 1, so up to 128 terms use
/// the worst case. Beyond, all roundings would have to go in the same direction: adding n terms to one number loses at
/// worst half a unit in the last place each, and half of that if the terms are alike. A quarter of n covers that, and
/// covers independent roundings, which grow with the root of n, by a large margin.
inline double roundings(std::int64_t n) {
  return static_cast<double>(n <= 128 ? n : 128) + (n <= 128 ? 0 : static_cast<double>(n - 128) / 4);
}

/// A sum of values or of products, added in any order, with or without rounded products.
class Sum {
public:
  explicit Sum(const Arithmetic &arithmetic) : arithmetic(arithmetic) {}

  void add(Value term);
  void addProduct(Value a, Value b);

  /// `more`: roundings of each term in addition to those of the sum.
  Value result(int more = 0) const;
  /// Returns the sum of |terms| and their errors.
  double size() const { return magnitude + error; }

private:
  const Arithmetic &arithmetic;
  double value = 0, magnitude = 0, error = 0;
  std::int64_t count = 0;
  bool isDetermined = true, hasProduct = false;
  bool isSpecial = false; // the terms include an infinity or a NaN: `special` is their sum
  double special = 0;
};

/// Wraps to integers of n bits: modulo 2^n in two's complement. Division truncates toward zero; x / 0 is 0, and
/// dividing the minimum by -1 gives the minimum.
double wrap(ElementType element, std::int64_t value);

} // namespace kiln::interpreter
