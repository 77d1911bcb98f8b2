// SPDX-License-Identifier: Apache-2.0
//
// Helpers of the op tests: random inputs from this run's seed, the expected arrays, and one call that compares all of
// them. The programs are built once for each instruction set: KILN_LEVEL and KILN_LEVEL_UPPER are the suffix of the
// libraries.
#pragma once

#include "reference.h"
#include "session.h"

#include <cmath>
#include <random>

#define KILN_OPS(model) KILN_TEST_JOIN(model, KILN_LEVEL)
#define KILN_OPS_HEADER(model) KILN_TEST_TEXT(KILN_OPS(model).h)
#define KILN_OPS_HANDLE(model) KILN_TEST_JOIN(KILN_OPS(model), _t)
#define KILN_OPS_LIBRARY(model, MODEL)                                                                                 \
  KILN_TEST_LIBRARY(KILN_OPS(model), KILN_TEST_JOIN(KILN_TEST_JOIN(MODEL, KILN_LEVEL_UPPER), _WEIGHTS))
#define KILN_OPS_ENTRY(model, entry) KILN_TEST_JOIN(KILN_OPS(model), KILN_TEST_JOIN(_, entry))

namespace kiln::testing {

/// Returns this run's seed, which is printed once; KILN_SEED sets it.
unsigned seed();
std::mt19937 &generator();

/// Returns random values that f32 represents exactly, uniform in [low, high).
Array random(const Shape &shape, double low = -2, double high = 2);
/// Returns random integers in [low, high).
Array randomIntegers(const Shape &shape, std::int64_t low, std::int64_t high);

/// Returns edge cases of comparisons, of both signs: NaN, infinity, zero, the smallest and the largest numbers; most
/// elements are `usual`.
Array randomExtremes(const Shape &shape, double usual);

/// Returns a weight with the counter's values.
Array weightOf(const std::vector<WeightShape> &weights, const std::string &name);

/// Values of the dynamic dimensions: each number of rows near the length of a vector or a tile, the bounds, and
/// corners.
struct Extents {
  std::int64_t batch, rows, others;
};
const std::vector<Extents> &allExtents();

/// An input.
template <class T> class GivenOf : public Input<T> {
public:
  explicit GivenOf(const Array &array) : Input<T>(std::vector<T>(array.values.begin(), array.values.end())) {}
};
using Given = GivenOf<float>;
using GivenIntegers = GivenOf<std::int32_t>;

/// An output and its expected values: |ours - reference| <= tolerance * (|reference| + floor) everywhere.
class Expected : public Output<float> {
public:
  static constexpr double largest = -1;
  /// floor `largest`: the largest |reference|, for results that are sums of many terms.
  Expected(Array array, double tolerance, double floor = largest)
      : Output(array.values.size()), reference(std::move(array)), tolerance(tolerance), floor(floor) {}
  void compare(std::size_t position) const;

private:
  Array reference;
  double tolerance, floor;
};

/// An output of integers, compared exactly.
class ExpectedIntegers : public Output<std::int32_t> {
public:
  explicit ExpectedIntegers(Array array) : Output(array.values.size()), reference(std::move(array)) {}
  void compare(std::size_t position) const;

private:
  Array reference;
};

namespace detail {
inline void compare(const Expected &expected, std::size_t position) { expected.compare(position); }
inline void compare(const ExpectedIntegers &expected, std::size_t position) { expected.compare(position); }
template <class Other> void compare(const Other &, std::size_t) {}
} // namespace detail

/// Runs an entry and compares every Expected among its arguments.
template <class Handle, class Entry, class... Arguments>
void runAndCompare(Session<Handle> &session, Entry entry, Arguments &&...arguments) {
  session.run(entry, arguments...);
  std::size_t position = 0;
  (detail::compare(arguments, position++), ...);
}

/// Tolerances for `Expected`: elementwise results to a few units in the last place, contractions to more.
inline constexpr double pointwiseTolerance = 1e-6, sumTolerance = 2e-6;

} // namespace kiln::testing

/// Adds the extents to failure messages.
#define KILN_TRACE_EXTENTS(e)                                                                                          \
  SCOPED_TRACE("batch " + std::to_string((e).batch) + ", rows " + std::to_string((e).rows) + ", others " +             \
               std::to_string((e).others) + ", seed " + std::to_string(::kiln::testing::seed()))
