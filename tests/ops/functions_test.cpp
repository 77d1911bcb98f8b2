// SPDX-License-Identifier: Apache-2.0
//
// The errors of unary functions, of powers, and of sines and cosines of positions, compared with libm in f64: the
// bounds are those of "Error bounds" and "sinusoidal" in dsl/SPEC.md. Each run tests a sample of the 2^32 inputs
// with a random offset; KILN_TEST_EVERY_FLOAT=1 in the environment tests all, as the nightly tests ops_*.every_float
// do.
#include "functions.h"
#include "ops.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>
#ifdef __linux__
#include <thread>
#endif

#include KILN_OPS_HEADER(ops_functions)

namespace kiln::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double overflow = 0x1p128;

auto &session() {
  static Session session(KILN_OPS_LIBRARY(ops_functions, OPS_FUNCTIONS));
  return session;
}
#define ENTRY(name) KILN_OPS_ENTRY(ops_functions, name)

/// The bound of an error: in units in the last place of the exact value, plus an absolute error.
struct Bound {
  double ulps, absolute;
};

struct Function {
  const char *name;
  double (*reference)(double);
  Bound bound;
};
#define KILN_FUNCTION(name, reference, ulps, absolute)                                                                 \
  {                                                                                                                    \
    #name, reference, { ulps, absolute }                                                                               \
  }
const Function functions[] = {KILN_TEST_FUNCTIONS(KILN_FUNCTION)};
constexpr std::size_t count = std::size(functions);

/// Computes all functions of some numbers; the outputs are in the order of the table.
std::deque<Output<float>> compute(const std::vector<float> &numbers) {
  Input<float> x(numbers);
  std::deque<Output<float>> y;
  for (std::size_t i = 0; i < count; ++i)
    y.emplace_back(numbers.size());
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    session().runWith({1}, ENTRY(unary), static_cast<std::int64_t>(numbers.size()), x, y[I]...);
  }(std::make_index_sequence<count>());
  return y;
}

/// Returns the error to compare with a bound, in units in the last place: 0 for a correct result, infinity if only one
/// of the values is NaN. Magnitudes of at least 2^128, and infinity, count as 2^128.
double errorIn(double actual, double expected, double absolute) {
  if (std::isnan(expected) || std::isnan(actual))
    return std::isnan(expected) && std::isnan(actual) ? 0 : infinity;
  expected = std::fmax(std::fmin(expected, overflow), -overflow);
  actual = std::fmax(std::fmin(actual, overflow), -overflow);
  int exponent = 0;
  std::frexp(std::fmin(std::fabs(expected), 0x1.fffffep127), &exponent);
  const double unit = std::ldexp(1.0, std::max(expected == 0 ? -149 : exponent - 24, -149));
  return std::fmax(std::fabs(actual - expected) - absolute, 0) / unit;
}

struct Worst {
  double error = 0, at = 0, value = 0;
  void include(double other, double x, double y) {
    if (other > error) {
      error = other;
      at = x;
      value = y;
    }
  }
};

/// Calls body(first, last) for parts of [0, n), concurrently on systems with threads.
template <class Body> void inParts(std::size_t n, Body body) {
#ifdef __linux__
  const std::size_t parts = n < 1 << 16 ? 1 : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < parts; ++i)
    threads.emplace_back([=] { body(i, n * i / parts, n * (i + 1) / parts); });
  for (std::thread &thread : threads)
    thread.join();
#else
  body(0, 0, n);
#endif
}

void tryNumbers(const std::vector<float> &numbers, Worst *worst) {
  const std::deque<Output<float>> y = compute(numbers);
  constexpr std::size_t mostParts = 256;
  std::vector<Worst> each(mostParts * count);
  inParts(numbers.size(), [&](std::size_t part, std::size_t first, std::size_t last) {
    for (std::size_t f = 0; f < count; ++f)
      for (std::size_t i = first; i < last; ++i)
        each[part % mostParts * count + f].include(
            errorIn(y[f].values()[i], functions[f].reference(numbers[i]), functions[f].bound.absolute), numbers[i],
            y[f].values()[i]);
  });
  for (std::size_t i = 0; i < each.size(); ++i)
    worst[i % count].include(each[i].error, each[i].at, each[i].value);
}

float ofBits(std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  float result;
  std::memcpy(&result, &low, sizeof(result));
  return result;
}

TEST(Functions, ErrorsAreWithinTheirBounds) {
  const bool isEvery = std::getenv("KILN_TEST_EVERY_FLOAT") != nullptr;
  const std::uint64_t stride = isEvery ? 1 : session().isOnHost() ? 16381 : 262139; // primes: all mantissa endings
  const std::size_t block = isEvery ? 1 << 20 : 1 << 16;
  Worst worst[count];
  std::vector<float> numbers;
  for (std::uint64_t bits = seed() % stride; bits < (std::uint64_t{1} << 32); bits += stride) {
    numbers.push_back(ofBits(bits));
    if (numbers.size() == block) {
      tryNumbers(numbers, worst);
      numbers.clear();
    }
  }
  if (!numbers.empty())
    tryNumbers(numbers, worst);
  for (std::size_t f = 0; f < count; ++f) {
    std::printf("%s: %.3f ulp at %a\n", functions[f].name, worst[f].error, worst[f].at);
    EXPECT_LE(worst[f].error, functions[f].bound.ulps)
        << functions[f].name << "(" << worst[f].at << ") is " << worst[f].value;
  }
}

// Inputs where the kind of result changes, or where it must be exact, and the neighbouring numbers.
TEST(Functions, PointsWhereResultsChange) {
  std::vector<float> numbers;
  const float largest = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  for (float x : {0.0f,       -0.0f,       1.0f,         -1.0f,       0.5f,
                  2.0f,       4.0f,        88.72283f,    88.72284f,   89.0f,
                  -87.0f,     -87.33655f,  -87.5f,       -88.0f,      -100.0f,
                  -103.0f,    -103.2789f,  -103.97208f,  -103.97209f, -104.0f,
                  -105.0f,    least,       -least,       0x1p-126f,   0x1.fffffep-127f,
                  1e-40f,     largest,     -largest,     9.0f,        -9.0f,
                  20.0f,      50.0f,       0.70710677f,  0.70710683f, 1.4142135f,
                  1.4142137f, 0.34657359f, -0.34657359f, 1e-5f,       -1e-5f})
    for (float near : {x, std::nextafter(x, largest), std::nextafter(x, -largest)})
      numbers.push_back(near);
  for (float special : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN(), ofBits(0xffc00001), ofBits(0x7f800001)})
    numbers.push_back(special);
  Worst worst[count];
  tryNumbers(numbers, worst);
  for (std::size_t f = 0; f < count; ++f)
    EXPECT_LE(worst[f].error, functions[f].bound.ulps)
        << functions[f].name << "(" << worst[f].at << ") is " << worst[f].value;
}

TEST(Functions, AreExactAtExactPoints) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::deque<Output<float>> results = compute({0.0f, -0.0f, 1.0f, inf, -inf, 4.0f, 0x1p-126f, -1.0f});
  auto of = [&](const std::string &name) {
    std::size_t f = 0;
    while (functions[f].name != name)
      ++f;
    return results[f].values();
  };
  EXPECT_EQ(of("exp")[0], 1);
  EXPECT_EQ(of("exp")[1], 1);
  EXPECT_EQ(of("exp")[3], inf);
  EXPECT_EQ(of("exp")[4], 0);
  EXPECT_EQ(of("log")[0], -inf);
  EXPECT_EQ(of("log")[1], -inf);
  EXPECT_EQ(of("log")[2], 0);
  EXPECT_EQ(of("log")[3], inf);
  EXPECT_TRUE(std::isnan(of("log")[4]));
  EXPECT_TRUE(std::isnan(of("log")[7]));
  EXPECT_EQ(of("sqrt")[5], 2);
  EXPECT_EQ(of("sqrt")[6], 0x1p-63f);
  EXPECT_EQ(of("rsqrt")[5], 0.5);
  EXPECT_EQ(of("rsqrt")[2], 1);
  EXPECT_EQ(of("tanh")[0], 0);
  EXPECT_EQ(of("tanh")[3], 1);
  EXPECT_EQ(of("tanh")[4], -1);
  EXPECT_EQ(of("sigmoid")[0], 0.5);
  EXPECT_EQ(of("sigmoid")[3], 1);
  EXPECT_EQ(of("sigmoid")[4], 0);
  for (const char *name : {"silu", "gelu", "gelu_tanh", "elu", "leaky_relu"})
    EXPECT_EQ(of(name)[0], 0) << name;
}

/// Returns the bound of exp(b log(a)): the errors of the rounded logarithm and product are proportional to the
/// exponent.
double powerBound(double a, double b) { return 4 + 3 * std::fabs(b * std::log(a)); }

void expectPowers(const char *what, const std::vector<float> &a, const Output<float> &actual,
                  const std::function<double(std::size_t)> &exponent,
                  const std::function<double(double, double)> &most) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double b = exponent(i), error = errorIn(actual.values()[i], std::pow(a[i], b), 0) / most(a[i], b);
    ASSERT_LE(error, 1) << what << ": " << a[i] << " to the power " << b << " is " << actual.values()[i];
    worst = std::fmax(worst, error);
  }
  std::printf("%s: %.3f of the bound\n", what, worst);
}

/// The outputs of the entry powers.
struct Powers {
  Powers(const std::vector<float> &a, const std::vector<float> &b)
      : power(a.size()), twoAndHalf(a.size()), minusThreeQuarters(a.size()), cube(a.size()), minusTwo(a.size()),
        minusSeven(a.size()), hundred(a.size()), minus101(a.size()) {
    Input<float> first(a), second(b);
    session().runWith({1}, ENTRY(powers), static_cast<std::int64_t>(a.size()), first, second, power, twoAndHalf,
                      minusThreeQuarters, cube, minusTwo, minusSeven, hundred, minus101);
  }

  Output<float> power, twoAndHalf, minusThreeQuarters, cube, minusTwo, minusSeven, hundred, minus101;
};

TEST(Functions, PowersAreWithinTheirBounds) {
  const std::size_t n = session().isOnHost() ? 100003 : 5003;
  std::uniform_real_distribution<double> logarithms(-60, 60), exponents(-20, 20);
  std::vector<float> a(n), b(n);
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = static_cast<float>(std::exp(i % 2 ? logarithms(generator()) : logarithms(generator()) / 60));
    b[i] = static_cast<float>(exponents(generator()));
  }
  a[0] = 1, b[0] = 1e30f; // 1 to any power, and any number to the power 0, are exact
  a[1] = 7, b[1] = 0;
  a[2] = 1e-40f, b[2] = 0.5f;
  a[3] = 319640.1f, b[3] = 1; // whose power -7 is subnormal
  const Powers powers(a, b);
  EXPECT_EQ(powers.power.values()[0], 1);
  EXPECT_EQ(powers.power.values()[1], 1);
  auto number = [](double value) { return [=](std::size_t) { return value; }; };
  auto roundings = [](double count) { return [=](double, double) { return count; }; };
  expectPowers("a^b", a, powers.power, [&](std::size_t i) { return double(b[i]); }, powerBound);
  expectPowers("a^2.5", a, powers.twoAndHalf, number(2.5), powerBound);
  expectPowers("a^-0.75", a, powers.minusThreeQuarters, number(-0.75), powerBound);
  expectPowers("a^100", a, powers.hundred, number(100), powerBound);
  expectPowers("a^-101", a, powers.minus101, number(-101), powerBound);
  // One rounding per multiplication; below 0 the rounding of 1 / a counts as often as it is a factor.
  expectPowers("a^3", a, powers.cube, number(3), roundings(2));
  expectPowers("a^-2", a, powers.minusTwo, number(-2), roundings(3));
  expectPowers("a^-7", a, powers.minusSeven, number(-7), roundings(13));
}

// The powers of C's pow, except that those of negative numbers to a tensor's power are NaN.
TEST(Functions, PowersOfInfinitiesZerosAndNegativeNumbers) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> a, b;
  for (float base : {0.0f, 1.0f, 2.0f, 0.5f, inf, nan, -1.0f, -2.0f, -0.5f, -inf, 1e20f, -1e20f, 1e-40f})
    for (float exponent : {0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, -2.0f, 3e38f, inf, -inf, nan}) {
      a.push_back(base);
      b.push_back(exponent);
    }
  const Powers powers(a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto expectPower = [&](double exponent, const Output<float> &actual, double most) {
      EXPECT_LE(errorIn(actual.values()[i], std::pow(double(a[i]), exponent), 0), most)
          << a[i] << " to the power " << exponent << " is " << actual.values()[i];
    };
    if (!(a[i] < 0) || b[i] == 0)
      expectPower(b[i], powers.power,
                  std::isfinite(a[i]) && a[i] > 0 && std::isfinite(b[i]) ? powerBound(a[i], b[i]) : 0);
    else
      EXPECT_TRUE(std::isnan(powers.power.values()[i])) << a[i] << " to the power " << b[i];
    if (!(a[i] < 0)) {
      expectPower(2.5, powers.twoAndHalf, 300);
      expectPower(-0.75, powers.minusThreeQuarters, 300);
    }
    expectPower(3, powers.cube, 2);
    expectPower(-2, powers.minusTwo, 3);
    expectPower(-7, powers.minusSeven, 13);
    expectPower(100, powers.hundred, 300);
    expectPower(-101, powers.minus101, 300);
  }
}

double angleError(const std::vector<std::int32_t> &positions, std::span<const float> actual, std::size_t width,
                  double base) {
  std::vector<double> worst(256, 0);
  inParts(positions.size() * width, [&](std::size_t part, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const std::size_t column = i % width;
      const double exponent = static_cast<double>(column - column % 2) / static_cast<double>(width);
      const double angle = positions[i / width] / std::pow(base, exponent);
      const double error = std::fabs(actual[i] - (column % 2 ? std::cos(angle) : std::sin(angle)));
      worst[part % 256] = error <= worst[part % 256] ? worst[part % 256] : error; // NaN propagates
    }
  });
  for (double each : worst)
    if (!(each <= worst[0]))
      worst[0] = each;
  return worst[0];
}

/// Rotates rows of numbers in [-1, 1]: two products with errors of angles, and three roundings.
void expectRotations(const std::vector<std::int32_t> &positions) {
  constexpr std::size_t heads = 2, depth = 32, half = depth / 2;
  const std::size_t n = positions.size();
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> rows(n * heads * depth);
  for (float &value : rows)
    value = uniform(generator());
  Input<std::int32_t> at(positions);
  Input<float> x(rows);
  Output<float> y(rows.size());
  session().runWith({1}, ENTRY(rotated), static_cast<std::int64_t>(n), at, x, y);
  double worst = 0;
  for (std::size_t t = 0; t < n; ++t)
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = positions[t] / std::pow(5e5, static_cast<double>(i) / half);
      const double sine = std::sin(angle), cosine = std::cos(angle);
      for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t first = (t * heads + head) * depth + i, second = first + half;
        const double a = rows[first], b = rows[second];
        for (double error : {y.values()[first] - (a * cosine - b * sine), y.values()[second] - (b * cosine + a * sine)})
          worst = std::fabs(error) <= worst ? worst : std::fabs(error); // NaN propagates
      }
    }
  EXPECT_LE(worst, 7e-7) << "from position " << positions[0];
}

void expectAngles(const std::vector<std::int32_t> &positions) {
  const std::size_t n = positions.size();
  Input<std::int32_t> at(positions);
  Output<float> usual(n * 64), large(n * 128), small(n * 6);
  session().runWith({1}, ENTRY(angles), static_cast<std::int64_t>(n), at, usual, large, small);
  EXPECT_LE(angleError(positions, usual.values(), 64, 1e4), 2.4e-7) << "from position " << positions[0];
  EXPECT_LE(angleError(positions, large.values(), 128, 5e5), 2.4e-7) << "from position " << positions[0];
  EXPECT_LE(angleError(positions, small.values(), 6, 1.5), 2.4e-7) << "from position " << positions[0];
  expectRotations(positions);
}

// Up to 2^24, and around each power of two: an earlier range reduction with three short parts was valid up to 40,000
// only.
TEST(Functions, AnglesOfLargePositions) {
  std::vector<std::int32_t> positions;
  for (int bit = 0; bit <= 24; ++bit)
    for (int near = -3; near <= (bit < 24 ? 3 : 0); ++near)
      positions.push_back((1 << bit) + near);
  for (std::int32_t from : {40000, 45056, 51200, 57344, 65536, 1000000, 16777184})
    for (std::int32_t i = 0; i < 32; ++i)
      positions.push_back(from + i);
  std::uniform_int_distribution<std::int32_t> any(-(1 << 24), 1 << 24);
  while (positions.size() < (session().isOnHost() ? 4096u : 512u))
    positions.push_back(any(generator()));
  expectAngles(positions);
}

TEST(Functions, AnglesOfBlocksOfPositions) {
  constexpr std::int32_t block = 512;
  const std::int32_t stride = std::getenv("KILN_TEST_EVERY_FLOAT") ? block : session().isOnHost() ? 1 << 20 : 1 << 23;
  std::vector<std::int32_t> positions(block);
  for (std::int32_t first = 0; first <= 1 << 24; first += stride) {
    for (std::int32_t i = 0; i < block; ++i)
      positions[static_cast<std::size_t>(i)] = std::min(first + i, 1 << 24);
    expectAngles(positions);
  }
}

} // namespace
} // namespace kiln::testing
