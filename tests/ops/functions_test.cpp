// SPDX-License-Identifier: Apache-2.0
//
// The errors of unary functions, of powers, and of sines and cosines of positions, compared with libm in f64: the
// bounds are those of "Error bounds" and "sinusoidal" in dsl/SPEC.md. Each run tests a sample of the 2^32 inputs
// with a random offset; KILN_TEST_EVERY_FLOAT=1 in the environment tests all, as the tests ops_*.every_float do.
#include "errors.h"
#include "ops.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
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

auto &session() {
  static Session session(KILN_OPS_LIBRARY(ops_functions, OPS_FUNCTIONS));
  return session;
}
#define ENTRY(name) KILN_OPS_ENTRY(ops_functions, name)

constexpr std::size_t count = std::size(testedFunctions);

bool isEveryInputTested() { return std::getenv("KILN_TEST_EVERY_FLOAT") != nullptr; }

/// An entry with the functions [first, first + count) of the table.
template <auto Function, std::size_t First, std::size_t Count> struct Part {
  /// Calls `call` with the entry and `outputs[first]`, ..., which are its outputs.
  template <class Outputs, class Call> static void callWith(Outputs &outputs, const Call &call) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      call(Function, outputs[First + I]...);
    }(std::make_index_sequence<Count>());
  }
};
#define KILN_ONE(...) 1
constexpr std::size_t basicCount = std::initializer_list<int>{KILN_TEST_BASIC_FUNCTIONS(KILN_ONE)}.size(),
                      analyticCount = std::initializer_list<int>{KILN_TEST_ANALYTIC_FUNCTIONS(KILN_ONE)}.size();
#undef KILN_ONE

/// The entries of all functions of the table.
template <auto BasicFunction, auto AnalyticFunction, auto ActivationsFunction> struct Entries {
  static constexpr std::size_t others = basicCount + analyticCount;

  template <class Outputs, class Call> static void callEach(Outputs &outputs, const Call &call) {
    Part<BasicFunction, 0, basicCount>::callWith(outputs, call);
    Part<AnalyticFunction, basicCount, analyticCount>::callWith(outputs, call);
    Part<ActivationsFunction, others, count - others>::callWith(outputs, call);
  }
};
using OfNumbers = Entries<&ENTRY(basic), &ENTRY(analytic), &ENTRY(activations)>;
using OfOneNumber = Entries<&ENTRY(single_basic), &ENTRY(single_analytic), &ENTRY(single_activations)>;

/// Computes all functions of some numbers; the outputs are in the order of the table.
std::deque<Output<float>> compute(const std::vector<float> &numbers) {
  Input<float> x(numbers);
  std::deque<Output<float>> y;
  for (std::size_t i = 0; i < count; ++i)
    y.emplace_back(numbers.size());
  OfNumbers::callEach(y, [&](auto entry, auto &...outputs) {
    session().runWith({1}, entry, static_cast<std::int64_t>(numbers.size()), x, outputs...);
  });
  return y;
}

double ulpsOf(double actual, double expected) { return oracle::errorOf(actual, expected, {0, 0}).ulps; }

using WorstOfEach = std::array<Worst, count>;

void tryNumbers(const std::vector<float> &numbers, WorstOfEach &worst) {
  const std::deque<Output<float>> y = compute(numbers);
  for (std::size_t f = 0; f < count; ++f)
    includeErrors(f, numbers, y[f].values(), worst[f]);
}

/// Tries blocks of numbers with consecutive bits in one thread. A session would check each call's accesses to memory,
/// which takes longer than the call; a sweep's buffers stay in the cache.
class Sweep {
public:
  static constexpr std::size_t block = 1 << 13;

  Sweep() {
    for (std::vector<float> &each : y)
      each.resize(block);
  }

  void tryFrom(std::uint32_t firstBits) {
    writeFloats(firstBits, x);
    OfNumbers::callEach(y, [&](auto entry, auto &...outputs) {
      const kiln_call_t call{arena.data(), arena.size() * sizeof(Line), nullptr, &error};
      ASSERT_EQ(entry(session().get(), &call, block, x.data(), outputs.data()...), KILN_OK) << error.message;
    });
    for (std::size_t f = 0; f < count; ++f)
      includeErrors(f, x, y[f], worst[f]);
  }

  WorstOfEach worst;

private:
  struct alignas(KILN_ARENA_ALIGNMENT) Line {
    unsigned char bytes[KILN_ARENA_ALIGNMENT];
  };

  std::vector<float> x = std::vector<float>(block);
  std::array<std::vector<float>, count> y;
  std::vector<Line> arena = std::vector<Line>(
      std::max({ENTRY(basic_arena_bytes)(1), ENTRY(analytic_arena_bytes)(1), ENTRY(activations_arena_bytes)(1)}) /
          sizeof(Line) +
      1);
  kiln_error_t error{};
};

/// Returns the worst errors of all floats, which as many threads try as there are CPUs.
WorstOfEach tryEveryFloat() {
  constexpr std::uint64_t blocks = (std::uint64_t{1} << 32) / Sweep::block;
  std::atomic<std::uint64_t> next = 0;
  auto sweepOn = [&](Sweep &sweep) {
    for (std::uint64_t i = next++; i < blocks && !::testing::Test::HasFatalFailure(); i = next++)
      sweep.tryFrom(static_cast<std::uint32_t>(i * Sweep::block));
  };
  std::vector<Sweep> sweeps(1);
#ifdef __linux__
  sweeps.resize(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (Sweep &sweep : sweeps)
    threads.emplace_back(sweepOn, std::ref(sweep));
  for (std::thread &thread : threads)
    thread.join();
#else
  sweepOn(sweeps[0]);
#endif
  WorstOfEach worst;
  for (const Sweep &sweep : sweeps)
    for (std::size_t f = 0; f < count; ++f)
      worst[f].include(sweep.worst[f]);
  return worst;
}

void expectWithinBounds(const WorstOfEach &worst) {
  for (std::size_t f = 0; f < count; ++f)
    EXPECT_LE(worst[f].ulps, testedFunctions[f].bound.ulps)
        << testedFunctions[f].name << "(" << worst[f].at << ") is " << worst[f].value;
}

TEST(Functions, ErrorsAreWithinTheirBounds) {
  WorstOfEach worst;
  if (isEveryInputTested() && session().isOnHost())
    worst = tryEveryFloat();
  else
    tryNumbers(sampleFloats(session().isOnHost() ? 16381 : 262139), worst);
  for (std::size_t f = 0; f < count; ++f) {
    const auto &[name, bound] = testedFunctions[f];
    std::printf("%s: %.3f ulp at %a", name, worst[f].ulps, worst[f].at);
    if (bound.absolute > 0)
      std::printf(" beyond %g; %g beyond %g ulp", bound.absolute, worst[f].absolute, bound.ulps);
    std::printf("\n");
  }
  expectWithinBounds(worst);
}

TEST(Functions, ErrorsOfASingleNumberAreWithinTheirBounds) {
  WorstOfEach worst;
  for (float number : sampleFloats(session().isOnHost() ? 4194301 : 67108859)) {
    Input<float> x(std::vector<float>{number});
    std::deque<Output<float>> y;
    for (std::size_t f = 0; f < count; ++f)
      y.emplace_back(1);
    OfOneNumber::callEach(y, [&](auto entry, auto &...outputs) { session().runWith({1}, entry, x, outputs...); });
    for (std::size_t f = 0; f < count; ++f)
      includeErrors(f, {&number, 1}, y[f].values(), worst[f]);
  }
  expectWithinBounds(worst);
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
    for (float neighbour : {x, std::nextafter(x, largest), std::nextafter(x, -largest)})
      numbers.push_back(neighbour);
  for (float special :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0xffc00001), std::bit_cast<float>(0x7f800001)})
    numbers.push_back(special);
  WorstOfEach worst;
  tryNumbers(numbers, worst);
  expectWithinBounds(worst);
}

TEST(Functions, AreExactAtExactPoints) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::deque<Output<float>> results = compute({0.0f, -0.0f, 1.0f, inf, -inf, 4.0f, 0x1p-126f, -1.0f});
  auto of = [&](const std::string &name) {
    std::size_t f = 0;
    while (testedFunctions[f].name != name)
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
  EXPECT_EQ(of("cos")[0], 1);
  EXPECT_TRUE(std::isnan(of("sin")[3]));
  EXPECT_TRUE(std::isnan(of("cos")[4]));
  EXPECT_EQ(of("erf")[3], 1);
  EXPECT_EQ(of("erf")[4], -1);
  EXPECT_EQ(of("expm1")[3], inf);
  EXPECT_EQ(of("expm1")[4], -1);
  EXPECT_EQ(of("log1p")[3], inf);
  EXPECT_EQ(of("log1p")[7], -inf);
  EXPECT_EQ(of("cosh")[0], 1);
  EXPECT_EQ(of("cosh")[4], inf);
  EXPECT_EQ(of("sinh")[4], -inf);
  EXPECT_EQ(of("log2")[2], 0);
  EXPECT_EQ(of("log10")[0], -inf);
  EXPECT_EQ(of("reciprocal")[5], 0.25);
  EXPECT_EQ(of("hard_sigmoid")[0], 0.5);
  EXPECT_EQ(of("hard_sigmoid")[3], 1);
  EXPECT_EQ(of("hard_swish")[5], 4);
  for (const char *name : {"silu", "gelu", "gelu_tanh", "elu", "leaky_relu", "sin", "erf", "expm1", "log1p", "sinh",
                           "mish", "selu", "hard_swish", "softsign"})
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
    const double b = exponent(i), error = ulpsOf(actual.values()[i], std::pow(a[i], b)) / most(a[i], b);
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
      EXPECT_LE(ulpsOf(actual.values()[i], std::pow(double(a[i]), exponent)), most)
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

/// The largest errors of angles with several widths and bases, and of rotations.
struct WorstAngles {
  double usual = 0, large = 0, small = 0, rotated = 0;
};

void includeAngles(const std::vector<std::int32_t> &positions, WorstAngles &worst) {
  const std::size_t n = positions.size();
  Input<std::int32_t> at(positions);
  Output<float> usual(n * 64), large(n * 128), small(n * 6), rotated(n * 64);
  Input<float> rows(randomRows(n * 64));
  session().runWith({1}, ENTRY(angles), static_cast<std::int64_t>(n), at, usual, large, small);
  session().runWith({1}, ENTRY(rotated), static_cast<std::int64_t>(n), at, rows, rotated);
  worst.usual = worse(worst.usual, angleError(positions, usual.values(), 64, 1e4));
  worst.large = worse(worst.large, angleError(positions, large.values(), 128, 5e5));
  worst.small = worse(worst.small, angleError(positions, small.values(), 6, 1.5));
  worst.rotated = worse(worst.rotated, rotationError(positions, rows.values, rotated.values(), 32, 5e5));
}

/// Rotated numbers in [-1, 1] are sums of two products with errors of angles, and round three times.
void expectWithinBounds(const WorstAngles &worst) {
  std::printf("angles: %.3g, %.3g, %.3g; rotated: %.3g\n", worst.usual, worst.large, worst.small, worst.rotated);
  EXPECT_LE(worst.usual, 2.4e-7);
  EXPECT_LE(worst.large, 2.4e-7);
  EXPECT_LE(worst.small, 2.4e-7);
  EXPECT_LE(worst.rotated, 7e-7);
}

// Up to 2^24, and around each power of two: an earlier range reduction with three short parts was valid up to 40,000
// only.
TEST(Functions, AnglesOfLargePositions) {
  std::vector<std::int32_t> positions;
  for (int bit = 0; bit <= 24; ++bit)
    for (int distance = -3; distance <= (bit < 24 ? 3 : 0); ++distance)
      positions.push_back((1 << bit) + distance);
  for (std::int32_t from : {40000, 45056, 51200, 57344, 65536, 1000000, 16777184})
    for (std::int32_t i = 0; i < 32; ++i)
      positions.push_back(from + i);
  std::uniform_int_distribution<std::int32_t> any(-(1 << 24), 1 << 24);
  while (positions.size() < (session().isOnHost() ? 4096u : 512u))
    positions.push_back(any(generator()));
  WorstAngles worst;
  includeAngles(positions, worst);
  expectWithinBounds(worst);
}

// Every input: all positions from 0 to 2^24.
TEST(Functions, AnglesOfBlocksOfPositions) {
  constexpr std::int32_t block = 512;
  const std::int32_t stride = isEveryInputTested() ? block : session().isOnHost() ? 1 << 20 : 1 << 23;
  std::vector<std::int32_t> positions(block);
  WorstAngles worst;
  for (std::int32_t first = 0; first <= 1 << 24; first += stride) {
    for (std::int32_t i = 0; i < block; ++i)
      positions[static_cast<std::size_t>(i)] = std::min(first + i, 1 << 24);
    includeAngles(positions, worst);
  }
  expectWithinBounds(worst);
}

} // namespace
} // namespace kiln::testing
