// SPDX-License-Identifier: Apache-2.0
//
// Composed functions whose results are exact, or whose error depends on the argument, compared with loops in f64. The
// errors of the others are in functions.h.
#include "errors.h"
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include KILN_OPS_HEADER(ops_derived)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_derived, entry)

namespace kiln::testing {
namespace {

auto &session() {
  static Session<KILN_OPS_HANDLE(ops_derived)> only(KILN_OPS_LIBRARY(ops_derived, OPS_DERIVED));
  return only;
}

double within(double x, double least, double most) { return x < least ? least : x > most ? most : x; }
double signOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; } // of NaN, too
double squareOf(double x) { return static_cast<float>(x) * static_cast<float>(x); }

void checkSigns(const Array &x, const Array &n) {
  Expected up(map(x, [](double v) { return std::ceil(v); }), 0, 0),
      whole(map(x, [](double v) { return std::trunc(v); }), 0, 0), sign(map(x, signOf), 0, 0),
      square(map(x, squareOf), 0, 0), unit(map(x, [](double v) { return within(v, -1, 1); }), 0, 0),
      bounded(map(x, [](double v) { return within(v, -2.5, 0.5); }), 0, 0),
      six(map(x, [](double v) { return within(v, 0, 6); }), 0, 0),
      celu(map(x, [](double v) { return v > 0 ? v : 1.5 * std::expm1(v / 1.5); }), pointwiseTolerance, 1e-30);
  ExpectedIntegers signs(map(n, signOf)), squares(map(n, [](double v) { return v * v; }));
  runAndCompare(session(), ENTRY(signs), x.shape[0], Given(x), GivenIntegers(n), up, whole, sign, signs, square,
                squares, unit, bounded, six, celu);
}

TEST(DerivedFunctions, Signs) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    checkSigns(random({e.rows, 19}, -10, 10), randomIntegers({e.rows, 19}, -3, 4));
  }
}

// Integers and their neighbours, bounds, numbers without a fraction, and NaN.
TEST(DerivedFunctions, SignsAtTheEdges) {
  const double below = std::nextafter(1.0f, 0.0f);
  Array x{{1, 19},
          {0.0, -0.0, 1, -1, below, -below, 0.5, -0.5, 6, -2.5, 1e-40f, -1e-40f, 8388609.0, -8388607.5, 1e30f, -1e30f,
           NAN, INFINITY, -INFINITY}};
  checkSigns(x, randomIntegers({1, 19}, -46340, 46341));
  checkSigns(randomExtremes({5, 19}, -0.25), randomIntegers({5, 19}, -1, 2));
}

TEST(DerivedFunctions, KindsOfNumbers) {
  for (const Array &x : {random({7, 19}), randomExtremes({37, 19}, 0.5), randomExtremes({5, 19}, NAN)}) {
    ExpectedIntegers isNan(map(x, [](double v) { return double(std::isnan(v)); })),
        isInfinite(map(x, [](double v) { return double(std::isinf(v)); })),
        isFinite(map(x, [](double v) { return double(std::isfinite(v)); }));
    runAndCompare(session(), ENTRY(kinds), x.shape[0], Given(x), isNan, isInfinite, isFinite);
  }
}

/// Returns the error of a tangent relative to its bound in dsl/SPEC.md.
double tangentError(float actual, double x) {
  const double expected = std::tan(x), ofArgument = std::fabs(x) < 8192 ? 3e-11 : 2e-8;
  return oracle::errorOf<double>(actual, expected, {0, ofArgument * (1 + expected * expected)}).ulps / 4;
}

// Next to poles and zeros the error of the reduced argument counts.
TEST(DerivedFunctions, Tangents) {
  constexpr std::int64_t rows = 37;
  std::vector<float> numbers;
  for (int quarter = -100; quarter <= 100; ++quarter) {
    const float near = static_cast<float>(quarter * 1.5707963267948966);
    for (float x : {near, std::nextafter(near, 1e3f), std::nextafter(near, -1e3f)})
      numbers.push_back(x);
  }
  std::uniform_real_distribution<double> exponent(-30, 88);
  while (numbers.size() < rows * 19)
    numbers.push_back(static_cast<float>(std::exp(exponent(generator()))) * (numbers.size() % 2 ? 1.0f : -1.0f));
  Input<float> x(numbers);
  Output<float> y(numbers.size());
  session().run(ENTRY(tangents), rows, x, y);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_LE(tangentError(y.values()[i], numbers[i]), 1) << numbers[i] << ": " << y.values()[i];
}

double logSumExp(const std::vector<double> &line) {
  const double most = *std::max_element(line.begin(), line.end());
  const double shift = std::isfinite(most) ? most : 0;
  double sum = 0;
  for (double value : line)
    sum += std::exp(value - shift);
  return std::log(sum) + shift;
}

void checkSumsOfPowers(const Extents &e, const Array &x) {
  Expected last(reduce(x, -1, logSumExp), sumTolerance, 1), middle(reduce(x, 1, logSumExp), sumTolerance, 1),
      first(reduce(x, 0, logSumExp), sumTolerance, 1);
  runAndCompare(session(), ENTRY(sums_of_powers), e.rows, e.batch, Given(x), last, middle, first);
}

// Numbers whose exponentials overflow, and lines with and of infinities.
TEST(DerivedFunctions, LogSumExp) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 19}, -200, 200);
    checkSumsOfPowers(e, x);
    std::fill_n(x.values.begin(), 19, -INFINITY);
    x.values.back() = INFINITY;
    checkSumsOfPowers(e, x);
    x.values[3] = NAN;
    checkSumsOfPowers(e, x);
  }
}

} // namespace
} // namespace kiln::testing
