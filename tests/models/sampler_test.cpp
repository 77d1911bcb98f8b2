// SPDX-License-Identifier: Apache-2.0
// The samples of examples/support/sampler.h: frequencies compared with the probabilities, and the effect of top_k and
// top_p.
#include "support/sampler.h"

#include <gtest/gtest.h>
#include <map>

namespace {

using support::Sampler;
using support::SamplerOptions;

// Probabilities 1/2, 1/4, 1/8, 1/16, 1/16 in another order.
const std::vector<float> logits{std::log(0.125f), std::log(0.5f), std::log(0.0625f), std::log(0.25f),
                                std::log(0.0625f)};

std::map<std::int32_t, double> frequencies(const SamplerOptions &options) {
  constexpr int draws = 40000;
  Sampler sampler(options);
  std::map<std::int32_t, double> result;
  for (int i = 0; i < draws; ++i)
    result[sampler(logits)] += 1.0 / draws;
  return result;
}

void expectFrequencies(const SamplerOptions &options, const std::map<std::int32_t, double> &expected) {
  const auto found = frequencies(options);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto &[token, probability] : expected)
    EXPECT_NEAR(found.at(token), probability, 0.01) << token;
}

TEST(Sampler, DrawsByProbability) {
  expectFrequencies({}, {{0, 0.125}, {1, 0.5}, {2, 0.0625}, {3, 0.25}, {4, 0.0625}});
}

TEST(Sampler, TemperatureSharpens) {
  // Squares of the probabilities, divided by their sum 0.3359375.
  expectFrequencies({.temperature = 0.5}, {{0, 0.046512}, {1, 0.744186}, {2, 0.011628}, {3, 0.186047}, {4, 0.011628}});
  expectFrequencies({.temperature = 0}, {{1, 1}});
}

TEST(Sampler, KeepsTheLikeliest) {
  expectFrequencies({.top_k = 2}, {{1, 2.0 / 3}, {3, 1.0 / 3}});
  expectFrequencies({.top_k = 1}, {{1, 1}});
  expectFrequencies({.top_k = 99}, {{0, 0.125}, {1, 0.5}, {2, 0.0625}, {3, 0.25}, {4, 0.0625}});
  // The first one of two equal tokens is kept.
  expectFrequencies({.top_k = 4}, {{0, 2.0 / 15}, {1, 8.0 / 15}, {2, 1.0 / 15}, {3, 4.0 / 15}});
}

TEST(Sampler, KeepsTheNucleus) {
  expectFrequencies({.top_p = 0.5}, {{1, 1}});
  expectFrequencies({.top_p = 0.51}, {{1, 2.0 / 3}, {3, 1.0 / 3}});
  expectFrequencies({.top_p = 0.8}, {{0, 1.0 / 7}, {1, 4.0 / 7}, {3, 2.0 / 7}});
  // top_p applies to the tokens that top_k leaves.
  expectFrequencies({.top_k = 2, .top_p = 0.6}, {{1, 1}});
}

TEST(Sampler, IsTheSameForASeed) {
  auto draw = [](std::uint64_t seed) {
    Sampler sampler({.seed = seed});
    std::vector<std::int32_t> result;
    for (int i = 0; i < 50; ++i)
      result.push_back(sampler(logits));
    return result;
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
}

TEST(Sampler, RefusesWhatMeansNothing) {
  EXPECT_THROW(Sampler({.temperature = -1}), std::runtime_error);
  EXPECT_THROW(Sampler({.top_p = 0}), std::runtime_error);
  EXPECT_THROW(Sampler({.top_p = 1.5}), std::runtime_error);
}

} // namespace
