// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of values with bounds: a running error analysis (Wilkinson; Higham 2002, section 3.3). What comes in may
// be off by its error in any direction, and what an implementation does adds its own roundings.
//
// A right implementation, as far as the bounds go:
//   - adds in any order, with fused multiply-adds or without; divides by multiplying with a reciprocal;
//   - takes exp and log to 2 ulp, subnormal results included, other functions to a few 1e-7 (`function`);
//   - else takes numbers below the smallest normal one for 0, in operands and results (`tiny`).
// It may not leave the range of its type on the way where the terms themselves do not.
//
// Results of f16 and bf16 are computed in f32, and may then be rounded once to the nearest (EvaluateOp.cpp).
//
// What reaches the largest number of the type is not determined. Infinities and NaN that come from infinities and NaN
// are exact, where every order and every fusing gives the same one.
#pragma once

#include <cmath>
#include <cstdint>

#include "compiler/interpreter/Tensor.h"

namespace kiln::interpreter {

inline Value exact(double value) { return {value, 0}; }

/// The largest finite number of a floating-point element type.
double largestOf(ElementType element);

/// Of an f16 or bf16 that was computed in f32: an implementation rounds it, or keeps it. An exact one that the type
/// holds is what it is.
Value rounded(ElementType element, Value x);

/// The arithmetic of a floating-point element type: of short ones that of f32, in which they are computed.
class Arithmetic {
public:
  explicit Arithmetic(ElementType element);

  Value add(Value a, Value b) const;
  Value sub(Value a, Value b) const { return add(a, {-b.value, b.error}); }
  Value mul(Value a, Value b) const;
  Value div(Value a, Value b) const;
  /// NaN where one is.
  Value maximum(Value a, Value b) const;
  Value minimum(Value a, Value b) const { return negative(maximum(negative(a), negative(b))); }

  Value exp(Value x) const;
  Value log(Value x) const;
  Value sqrt(Value x) const;
  Value tanh(Value x) const;
  Value sigmoid(Value x) const;
  Value relu(Value x) const { return maximum(x, exact(0)); }
  Value gelu(Value x) const;
  Value geluTanh(Value x) const;
  Value silu(Value x) const;
  Value softplus(Value x) const;
  Value abs(Value x) const { return {std::abs(x.value), x.error}; }
  /// Not determined where a whole number, or for `round` a half, is within the errors.
  Value floor(Value x) const;
  Value round(Value x) const;

  /// A finite result; not determined if the error is not, or if it may overflow.
  Value settle(double value, double error) const;
  /// Whether the size of intermediate results stays below the largest number.
  bool holds(double magnitude) const { return magnitude < largest; }

  double unit;     // the largest relative error of one rounding, 2^-24 for f32
  double function; // the relative error of a function
  double tiny;     // an absolute error that flushing to zero stays below
  double least;    // the smallest normal number
  double largest;

private:
  static Value negative(Value x) { return {-x.value, x.error}; }
  template <class Function> Value monotonic(Value x, Function function, double relative, double absolute) const;
  template <class Function> Value gated(Value x, Function function) const;
};

/// What an element of `sinusoidal` may be off: as dsl/SPEC.md has it up to a position of 2^24. Beyond, the digits of
/// the frequency in f64 count, here and in an implementation.
inline double sinusoidalError(std::int64_t position) {
  return std::fmax(2.4e-7, std::fabs(static_cast<double>(position)) * 0x1p-49);
}

/// How often the terms of a sum are rounded, at most: n - 1 times whatever the order, so 128 terms get all that can
/// happen. Beyond, roundings of one direction would have to follow each other: of n additions to one number half its
/// last place is lost each time at worst, and half of that if the addends are alike. A quarter of n covers that, and
/// independent roundings, which add up to the root of n, many times over.
inline double roundings(std::int64_t n) {
  return static_cast<double>(n <= 128 ? n : 128) + (n <= 128 ? 0 : static_cast<double>(n - 128) / 4);
}

/// A sum of values or of products, added in any order, products rounded or not.
class Sum {
public:
  explicit Sum(const Arithmetic &arithmetic) : arithmetic(arithmetic) {}

  void add(Value term);
  void addProduct(Value a, Value b);

  /// `more`: roundings of each term beside those of the sum.
  Value result(int more = 0) const;
  /// The sum of |terms| and their errors.
  double size() const { return magnitude + error; }

private:
  const Arithmetic &arithmetic;
  double value = 0, magnitude = 0, error = 0;
  std::int64_t count = 0;
  bool isDetermined = true, hasProduct = false;
  bool isSpecial = false; // an infinity or a NaN is among the terms: `special` is their sum
  double special = 0;
};

/// Whole numbers of n bits: modulo 2^n in two's complement. Division truncates toward zero, x / 0 = 0, the least / -1 =
/// the least.
double wrap(ElementType element, std::int64_t value);

} // namespace kiln::interpreter
