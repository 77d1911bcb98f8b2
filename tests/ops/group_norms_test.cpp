// SPDX-License-Identifier: Apache-2.0
//
// Group and instance norms of images whose elements are far from 0, compared with loops in f64: constant images, whose
// result is the bias, small deviations, and a first element that is far from all others.
#include "ops.h"

#include <bit>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include KILN_OPS_HEADER(ops_functions)

namespace kiln::testing {
namespace {

constexpr std::size_t images = 2, pixels = 11 * 13, channels = 36, count = images * pixels * channels;

auto &session() {
  static Session session(KILN_OPS_LIBRARY(ops_functions, OPS_FUNCTIONS));
  return session;
}
#define ENTRY(name) KILN_OPS_ENTRY(ops_functions, name)

std::size_t channelOf(std::size_t at) { return at % channels; }

/// Returns (x - mean) / sqrt(variance + epsilon) over the pixels and channels of each group of each image.
std::vector<double> normalize(const std::vector<double> &x, std::size_t groups) {
  const std::size_t width = channels / groups;
  auto groupOf = [&](std::size_t at) { return at / (pixels * channels) * groups + channelOf(at) / width; };
  auto meansOf = [&](const std::function<double(std::size_t)> &term) {
    std::vector<double> means(images * groups);
    for (std::size_t at = 0; at < count; ++at)
      means[groupOf(at)] += term(at) / static_cast<double>(pixels * width);
    return means;
  };
  const std::vector<double> means = meansOf([&](std::size_t at) { return x[at]; });
  auto difference = [&](std::size_t at) { return x[at] - means[groupOf(at)]; };
  const std::vector<double> variances = meansOf([&](std::size_t at) { return difference(at) * difference(at); });
  std::vector<double> result(count);
  for (std::size_t at = 0; at < count; ++at)
    result[at] = difference(at) / std::sqrt(variances[groupOf(at)] + 1e-5);
  return result;
}

/// The numbers of groups of the entries' results.
constexpr std::size_t groupsOf[] = {12, 18, 36, 4, 2}, groupsOfHalf[] = {12, 36, 4};

/// Runs all norms of x with weights of 1.
std::vector<std::vector<float>> run(const std::vector<float> &x, const std::vector<float> &bias) {
  Input<float> given(x), weight(std::vector<float>(channels, 1)), shift(bias);
  Output<float> results[std::size(groupsOf)] = {Output<float>(count), Output<float>(count), Output<float>(count),
                                                Output<float>(count), Output<float>(count)};
  session().runWith({1}, ENTRY(group_norms), given, weight, shift, results[0], results[1], results[2], results[3],
                    results[4]);
  std::vector<std::vector<float>> values;
  for (const Output<float> &result : results)
    values.emplace_back(result.values().begin(), result.values().end());
  return values;
}

std::vector<float> draw(std::size_t size, const std::function<double()> &next) {
  std::vector<float> values(size);
  for (float &value : values)
    value = static_cast<float>(next());
  return values;
}

void expectBias(const std::vector<float> &got, const std::vector<float> &bias) {
  for (std::size_t at = 0; at < count; ++at)
    ASSERT_EQ(got[at], bias[channelOf(at)]) << at;
}

TEST(GroupNorms, OfConstantImages) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  const std::vector<float> bias = draw(channels, [&] { return uniform(generator()); });
  for (float number : {10000.1f, -300.1f, 1000000.3f, 1e-3f, 3e10f}) {
    SCOPED_TRACE(number);
    for (const std::vector<float> &result : run(std::vector<float>(count, number), bias))
      expectBias(result, bias);
  }
}

TEST(GroupNorms, OfConstantGroups) {
  std::uniform_real_distribution<double> uniform(-2e4, 2e4);
  const std::vector<float> numbers = draw(images * channels, [&] { return uniform(generator()); }), bias(channels, 0);
  for (std::size_t i = 0; i < std::size(groupsOf); ++i) {
    const std::size_t width = channels / groupsOf[i];
    std::vector<float> x(count);
    for (std::size_t at = 0; at < count; ++at)
      x[at] = numbers[at / (pixels * channels) * channels + channelOf(at) / width];
    SCOPED_TRACE(groupsOf[i]);
    expectBias(run(x, bias)[i], bias);
  }
}

// The mean of an instance is rounded once: half a unit of 2^-10 at 10,000. Groups of several channels also round the
// means of their channels, each by half a unit; the deviation of a small group may be 10 % below 0.01. Plain sums were
// 0.2 off.
void expectNear(double deviation, double mostOfInstances, double mostOfGroups) {
  std::normal_distribution<double> normal(10000, deviation);
  const std::vector<float> x = draw(count, [&] { return normal(generator()); });
  const auto results = run(x, std::vector<float>(channels, 0));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::vector<double> expected = normalize({x.begin(), x.end()}, groupsOf[i]);
    double error = 0;
    for (std::size_t at = 0; at < count; ++at)
      error = std::fmax(error, std::fabs(results[i][at] - expected[at]));
    std::printf("%zu groups, deviation %g: %.2g\n", groupsOf[i], deviation, error);
    EXPECT_LE(error, groupsOf[i] == channels ? mostOfInstances : mostOfGroups)
        << groupsOf[i] << " groups, deviation " << deviation << ", seed " << seed();
  }
}

TEST(GroupNorms, OfNumbersWithALargeMean) {
  expectNear(1, 1e-3, 2e-3);
  expectNear(0.01, 0.06, 0.12);
}

// Differences from the first element round all other elements to multiples of 8.
TEST(GroupNorms, WhoseFirstElementIsFarFromTheOthers) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<float> x = draw(count, [&] { return uniform(generator()); });
  for (std::size_t image = 0; image < images; ++image)
    for (std::size_t c = 0; c < channels; ++c)
      x[image * pixels * channels + c] = 1e8f;
  const auto results = run(x, std::vector<float>(channels, 0));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::vector<double> expected = normalize({x.begin(), x.end()}, groupsOf[i]);
    for (std::size_t at = 0; at < count; ++at)
      ASSERT_NEAR(results[i][at], expected[at], 1e-5) << groupsOf[i] << " groups, " << at << ", seed " << seed();
  }
}

/// A 16-bit type: its bits of 1 and of a number near 1000, and the largest rounding error of results, which are
/// below 4.
struct HalfFloat {
  const char *name;
  std::uint16_t one, thousand;
  double rounding;
};
constexpr HalfFloat halfFloats[] = {{"f16", 0x3c00, 0x63d0, 0x1p-10}, {"bf16", 0x3f80, 0x447a, 0x1p-7}};

double valueOf(const HalfFloat &type, std::uint16_t bits) {
  const bool isBfloat = type.one == 0x3f80;
  return isBfloat ? std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)
                  : (bits >> 15 ? -1 : 1) * std::ldexp(bits >> 10 & 31 ? 1024 + (bits & 1023) : bits & 1023,
                                                       std::max(bits >> 10 & 31, 1) - 25);
}

void runHalf(const std::vector<std::uint16_t> (&x)[2], std::uint16_t (&bias)[2],
             const std::function<void(const HalfFloat &, std::size_t, std::span<const std::uint16_t>)> &see) {
  auto filled = [](std::uint16_t bits) { return std::vector<std::uint16_t>(channels, bits); };
  Input<std::uint16_t> given(x[0]), weight(filled(halfFloats[0].one)), shift(filled(bias[0]));
  Input<std::uint16_t> other(x[1]), otherWeight(filled(halfFloats[1].one)), otherShift(filled(bias[1]));
  using Result = Output<std::uint16_t>;
  Result results[2 * std::size(groupsOfHalf)] = {Result(count), Result(count), Result(count),
                                                 Result(count), Result(count), Result(count)};
  session().runWith({1}, ENTRY(half_group_norms), given, weight, shift, other, otherWeight, otherShift, results[0],
                    results[1], results[2], results[3], results[4], results[5]);
  for (std::size_t i = 0; i < std::size(results); ++i) {
    const HalfFloat &type = halfFloats[i / std::size(groupsOfHalf)];
    const std::size_t groups = groupsOfHalf[i % std::size(groupsOfHalf)];
    SCOPED_TRACE(std::string(type.name) + ", " + std::to_string(groups) + " groups, seed " + std::to_string(seed()));
    see(type, groups, results[i].values());
  }
}

TEST(GroupNorms, OfConstantHalfFloats) {
  std::uint16_t bias[] = {0x3555, 0x3eab}; // about a third
  const std::vector<std::uint16_t> x[] = {std::vector<std::uint16_t>(count, halfFloats[0].thousand + 1),
                                          std::vector<std::uint16_t>(count, halfFloats[1].thousand + 1)};
  runHalf(x, bias, [&](const HalfFloat &type, std::size_t, std::span<const std::uint16_t> result) {
    for (std::uint16_t bits : result)
      ASSERT_EQ(bits, bias[&type - halfFloats]);
  });
}

TEST(GroupNorms, OfHalfFloatsWithALargeMean) {
  std::uniform_int_distribution<int> steps(-6, 6);
  std::uint16_t bias[] = {0, 0};
  std::vector<std::uint16_t> x[2];
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t at = 0; at < count; ++at)
      x[i].push_back(static_cast<std::uint16_t>(halfFloats[i].thousand + steps(generator())));
  runHalf(x, bias, [&](const HalfFloat &type, std::size_t groups, std::span<const std::uint16_t> result) {
    std::vector<double> values;
    for (std::uint16_t bits : x[&type - halfFloats])
      values.push_back(valueOf(type, bits));
    const std::vector<double> expected = normalize(values, groups);
    for (std::size_t at = 0; at < count; ++at)
      ASSERT_NEAR(valueOf(type, result[at]), expected[at], type.rounding + 1e-4) << at;
  });
}

} // namespace
} // namespace kiln::testing
