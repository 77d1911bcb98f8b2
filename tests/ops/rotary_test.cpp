// SPDX-License-Identifier: Apache-2.0
// The oracle rotates pairs one by one, by angles that are computed in f64 from the formulas of the papers.
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <numbers>
#include <span>

#include KILN_OPS_HEADER(ops_rotary)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_rotary, entry)

namespace kiln::testing {
namespace {

auto &session() {
  static Session<KILN_OPS_HANDLE(ops_rotary)> only(KILN_OPS_LIBRARY(ops_rotary, OPS_ROTARY));
  return only;
}

using Frequencies = std::vector<double>;

Frequencies plain(int pairs, double base) {
  Frequencies result;
  for (int i = 0; i < pairs; ++i)
    result.push_back(std::pow(base, -static_cast<double>(i) / pairs));
  return result;
}

/// Long waves are divided by 8, short ones kept, those between interpolated over 8192 / wavelength from 1 to 4.
Frequencies llama3(int pairs, double base) {
  Frequencies result = plain(pairs, base);
  for (double &frequency : result) {
    const double wave = 2 * std::numbers::pi / frequency, smooth = (8192 / wave - 1) / 3;
    if (wave > 8192)
      frequency /= 8;
    else if (wave > 8192.0 / 4)
      frequency = (1 - smooth) * frequency / 8 + smooth * frequency;
  }
  return result;
}

/// YaRN for a factor of 4 of 32768 positions: pairs are interpolated between those of 32 and of 1 rotations.
Frequencies yarn(int pairs, double base) {
  auto pairOf = [&](double rotations) {
    return pairs * std::log(32768 / (rotations * 2 * std::numbers::pi)) / std::log(base);
  };
  const double first = std::floor(pairOf(32)), last = std::ceil(pairOf(1));
  Frequencies result = plain(pairs, base);
  for (int i = 0; i < pairs; ++i) {
    const double ramp = std::clamp((i - first) / (last - first), 0.0, 1.0);
    result[static_cast<std::size_t>(i)] *= (1 - ramp) + ramp / 4;
  }
  return result;
}

Array angles(const std::vector<double> &positions, const Frequencies &frequencies) {
  const auto rows = static_cast<std::int64_t>(positions.size()),
             width = static_cast<std::int64_t>(2 * frequencies.size());
  return generate({rows, width}, [&](const Index &at) {
    const double angle = positions[static_cast<std::size_t>(at[0])] * frequencies[static_cast<std::size_t>(at[1] / 2)];
    return at[1] % 2 ? std::cos(angle) : std::sin(angle);
  });
}

/// Rotates the first pairs of each head of x [..., rows, heads * depth] by positions that depend on the row and the
/// pair.
Array rotate(const Array &x, int heads, const Frequencies &frequencies, bool isAdjacent,
             const std::function<double(const Index &, std::size_t)> &positionOf) {
  const auto depth = x.shape.back() / heads, pairs = static_cast<std::int64_t>(frequencies.size());
  return generate(x.shape, [&](const Index &at) {
    const std::int64_t channel = at.back() % depth;
    if (channel >= 2 * pairs)
      return x.at(at);
    const auto pair = static_cast<std::size_t>(isAdjacent ? channel / 2 : channel % pairs);
    const bool isFirst = isAdjacent ? channel % 2 == 0 : channel < pairs;
    const double angle = positionOf(at, pair) * frequencies[pair];
    Index other = at;
    other.back() += (isFirst ? 1 : -1) * (isAdjacent ? 1 : pairs);
    return x.at(at) * std::cos(angle) + (isFirst ? -1 : 1) * x.at(other) * std::sin(angle);
  });
}

/// The row's own number.
double rowOf(const Index &at, std::size_t) { return static_cast<double>(at[at.size() - 2]); }

double worstAngle(const std::vector<double> &positions, std::span<const float> actual, const Frequencies &frequencies) {
  const Array wanted = angles(positions, frequencies);
  double worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i)
    worst = std::max(worst, std::isfinite(actual[i]) ? std::fabs(actual[i] - wanted.values[i])
                                                     : std::numeric_limits<double>::infinity());
  return worst;
}

// As accurate as plain powers of a base (Functions.AnglesOfLargePositions).
TEST(Rotary, ScaledAnglesOfLargePositions) {
  std::vector<std::int32_t> positions{0, 1, 8191, 8192, 131071, 999999, 1000000, (1 << 24) - 1, -1000000};
  std::uniform_int_distribution<std::int32_t> any(0, 1000000);
  while (positions.size() < (session().isOnHost() ? 2000u : 100u))
    positions.push_back(any(generator()));
  const std::vector<double> numbers(positions.begin(), positions.end());
  Input<std::int32_t> at(positions);
  Output<float> ofLlama3(positions.size() * 128), ofYarn(positions.size() * 64);
  session().runWith({1}, ENTRY(scaled), static_cast<std::int64_t>(positions.size()), at, ofLlama3, ofYarn);
  Frequencies scaledByYarn = yarn(32, 1e6);
  const double amplitude = 0.1 * std::log(4.0) + 1;
  std::vector<float> withoutAmplitude;
  for (float value : ofYarn.values())
    withoutAmplitude.push_back(static_cast<float>(value / amplitude));
  const double worstLlama3 = worstAngle(numbers, ofLlama3.values(), llama3(64, 5e5)),
               worstYarn = worstAngle(numbers, withoutAmplitude, scaledByYarn);
  std::printf("angles: %.3g, %.3g\n", worstLlama3, worstYarn);
  EXPECT_LE(worstLlama3, 2.4e-7);
  EXPECT_LE(worstYarn, 3.6e-7); // two more roundings
}

// The fraction's product with the frequency is rounded twice, by 2^-24 of the angle each.
TEST(Rotary, AnglesOfFractions) {
  std::vector<float> positions{0,        0.5f, -0.25f,     0.999f,  1000.75f, -1000.75f,
                               65535.5f, 1e6f, 8388607.5f, 0x1p30f, -1e-20f};
  std::uniform_real_distribution<float> any(-1000, 1000);
  while (positions.size() < (session().isOnHost() ? 2000u : 100u))
    positions.push_back(any(generator()));
  const std::vector<double> numbers(positions.begin(), positions.end());
  Input<float> at(positions);
  const std::size_t n = positions.size();
  Output<float> usual(n * 64), scaled(n * 128), fast(n * 6);
  session().runWith({1}, ENTRY(fractions), static_cast<std::int64_t>(n), at, usual, scaled, fast);
  const double worstUsual = worstAngle(numbers, usual.values(), plain(32, 1e4)),
               worstScaled = worstAngle(numbers, scaled.values(), llama3(64, 5e5)),
               worstFast = worstAngle(numbers, fast.values(), {0, 3, 100});
  std::printf("angles: %.3g, %.3g, %.3g\n", worstUsual, worstScaled, worstFast);
  EXPECT_LE(worstUsual, 2.4e-7 + 0x1p-22);
  EXPECT_LE(worstScaled, 2.4e-7 + 0x1p-22);
  EXPECT_LE(worstFast, 2.4e-7 + 100 * 0x1p-22);
}

TEST(Rotary, AnglesOfNoNumbers) {
  const float infinity = std::numeric_limits<float>::infinity();
  Input<float> at({0x1p31f, -infinity, infinity, std::nanf(""), -0x1.fffffep30f});
  Output<float> usual(5 * 64), scaled(5 * 128), fast(5 * 6);
  session().runWith({1}, ENTRY(fractions), std::int64_t{5}, at, usual, scaled, fast);
  for (std::size_t i = 0; i < 4 * 64; ++i)
    EXPECT_TRUE(std::isnan(usual.values()[i])) << i;
  for (std::size_t i = 4 * 64; i < 5 * 64; ++i)
    EXPECT_LE(std::fabs(usual.values()[i]), 1) << i;
}

TEST(Rotary, PositionsPerSequence) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 24}), at = randomIntegers({e.batch, e.rows}, -5, 1000),
          starts = randomIntegers({e.batch, 1}, 0, 5000);
    auto own = [&](const Index &i, std::size_t) { return at.at({i[0], i[1]}); };
    auto fromOne = [&](const Index &i, std::size_t) { return static_cast<double>(i[1] + 77); };
    auto fromStart = [&](const Index &i, std::size_t) { return static_cast<double>(i[1]) + starts.at({i[0], 0}); };
    Expected a(rotate(x, 3, plain(4, 500), false, own), pointwiseTolerance, 1),
        b(rotate(x, 3, plain(4, 1e4), false, fromOne), pointwiseTolerance, 1),
        c(rotate(x, 2, plain(6, 100), false, fromStart), pointwiseTolerance, 1);
    runAndCompare(session(), ENTRY(placed), e.batch, e.rows, Given(x), GivenIntegers(at), GivenIntegers(starts),
                  GivenIntegers(number(77)), a, b, c);
  }
}

TEST(Rotary, PartOfAHead) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 30});
    Expected three(rotate(x, 3, plain(3, 100), false, rowOf), pointwiseTolerance, 1),
        one(rotate(x, 1, plain(1, 1e4), false, rowOf), pointwiseTolerance, 1);
    runAndCompare(session(), ENTRY(partial), e.batch, e.rows, Given(x), three, one);
  }
}

TEST(Rotary, AdjacentPairs) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.rows, 24}), y = random({e.batch, e.rows, 30});
    Expected whole(rotate(x, 3, plain(4, 100), true, rowOf), pointwiseTolerance, 1),
        part(rotate(y, 3, plain(2, 100), true, rowOf), pointwiseTolerance, 1);
    runAndCompare(session(), ENTRY(adjacent), e.batch, e.rows, Given(x), Given(y), whole, part);
  }
}

TEST(Rotary, SeveralAxes) {
  constexpr std::int64_t sections[] = {0, 0, 1, 1, 1, 2, 2, 2}, interleaved[] = {0, 1, 2, 0, 1, 2, 0, 0};
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 32}), at = randomIntegers({3, e.batch, e.rows}, 0, 1000),
          places = random({2, e.rows}, 0, 100);
    auto inTurn = [&](const std::int64_t *axes) {
      return [&at, axes](const Index &i, std::size_t pair) { return at.at({axes[pair], i[0], i[1]}); };
    };
    auto ofPicture = [&](const Index &i, std::size_t pair) { return places.at({pair < 2 ? 0 : 1, i[1]}); };
    Frequencies twice = plain(2, 100);
    twice.insert(twice.end(), {1, 0.1});
    Expected a(rotate(x, 2, plain(8, 100), false, inTurn(sections)), pointwiseTolerance, 1),
        b(rotate(x, 2, plain(8, 100), false, inTurn(interleaved)), pointwiseTolerance, 1),
        c(rotate(x, 4, twice, false, ofPicture), 2 * pointwiseTolerance, 1); // fractions
    runAndCompare(session(), ENTRY(axes), e.batch, e.rows, Given(x), GivenIntegers(at), Given(places), a, b, c);
  }
}

TEST(Rotary, OfHalfFloats) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = map(randomIntegers({e.rows, 24}, -64, 65), [](double value) { return value / 32; }); // exact in f16
    Expected y(rotate(x, 3, plain(4, 100), false, rowOf), 3e-3, 1); // roundings of angles, products and sums to 11 bits
    runAndCompare(session(), ENTRY(halves), e.rows, Given(x), y);
  }
}

} // namespace
} // namespace kiln::testing
