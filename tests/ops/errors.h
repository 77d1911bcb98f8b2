// SPDX-License-Identifier: Apache-2.0
//
// The errors of f32 functions relative to f64. The interpretation of a bound is that of "Error bounds" in dsl/SPEC.md.
#pragma once

#include "functions.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace kiln::testing {

/// The bound of an error: units in the last place of the exact value, plus an absolute error.
struct Bound {
  double ulps, absolute;
};

/// An error relative to a bound: the units in the last place that exceed the absolute bound, and the absolute error
/// that exceeds the bound in units in the last place. The result is within its bound if ulps <= bound.ulps.
template <class T> struct Error {
  T ulps, absolute;
};

namespace oracle {

inline double limited(double x, double least, double most) { return x < least ? least : x > most ? most : x; }
inline double powerOfTwoIn(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000);
}

/// Returns the error of a result: 0 if both values are NaN, infinity if only one of them is. Magnitudes of at least
/// 2^128, and infinity, count as 2^128.
template <class T> Error<T> errorOf(T actual, T expected, Bound bound) {
  constexpr double overflow = 0x1p128;
  const T difference = fabs(limited(actual, -overflow, overflow) - limited(expected, -overflow, overflow));
  const T unit = limited(T(0x1p-23) * powerOfTwoIn(limited(fabs(expected), 0, 0x1.fffffep127)), 0x1p-149, overflow);
  const auto isOrdered = difference == difference;
  const T otherwise =
      select((actual != actual) & (expected != expected), T(0), T(HUGE_VAL)); // one of them is NaN, or both are
  return {select(isOrdered, limited(difference - T(bound.absolute), 0, HUGE_VAL) / unit, otherwise),
          select(isOrdered, limited(difference - T(bound.ulps) * unit, 0, HUGE_VAL), otherwise)};
}

} // namespace oracle

/// The largest errors of a function, and where the first of them is.
struct Worst {
  double ulps = 0, absolute = 0, at = 0, value = 0;
  void include(const Error<double> &error, double x, double y);
  void include(const Worst &other);
};

struct TestedFunction {
  const char *name;
  Bound bound;
};
#define KILN_TESTED_FUNCTION(name, expression, ulps, absolute)                                                         \
  {                                                                                                                    \
    #name, { ulps, absolute }                                                                                          \
  }
inline constexpr TestedFunction testedFunctions[] = {KILN_TEST_FUNCTIONS(KILN_TESTED_FUNCTION)};

namespace oracle {
#define KILN_EXPRESSION(name, expression, ulps, absolute)                                                              \
  [](auto x) {                                                                                                         \
    using T [[maybe_unused]] = decltype(x);                                                                            \
    return expression;                                                                                                 \
  }
/// The functions of testedFunctions, of double or Lanes.
inline constexpr std::tuple expressions{KILN_TEST_FUNCTIONS(KILN_EXPRESSION)};
} // namespace oracle

/// Returns a function of testedFunctions in f64 as libm computes it.
double computeInF64(std::size_t function, double x);

/// Includes the errors of f32 results y of a function of testedFunctions. The oracle is libm in f64. Where libmvec is
/// available, it decides which numbers libm computes: those whose error is the largest so far, or within a millionth of
/// it.
void includeErrors(std::size_t function, std::span<const float> x, std::span<const float> y, Worst &worst);

/// Returns a function of testedFunctions in f64 as libmvec computes it; nothing if it is not available. The number of
/// arguments is a multiple of 4.
std::vector<double> computeInLanes(std::size_t function, std::span<const float> x);

/// Returns a sample of all 2^32 floats with an offset from this run's seed. The distance of their bits should be prime,
/// so that the sample has all endings.
std::vector<float> sampleFloats(std::uint64_t distance);
/// Writes the floats of consecutive bits.
void writeFloats(std::uint32_t firstBits, std::span<float> to);

/// Returns the larger error, or NaN if one of them is.
double worse(double a, double b);

/// Returns `count` random numbers in [-1, 1).
std::vector<float> randomRows(std::size_t count);

/// Returns the largest difference of [positions, width] sines and cosines of the DSL's `sinusoidal` from those of libm
/// in f64; NaN if there is one.
double angleError(std::span<const std::int32_t> positions, std::span<const float> actual, std::size_t width,
                  double base);
/// The same for rotated rows [positions, heads, depth], by the angles of `sinusoidal<depth>`.
double rotationError(std::span<const std::int32_t> positions, std::span<const float> rows,
                     std::span<const float> rotated, std::size_t depth, double base);

} // namespace kiln::testing
