// SPDX-License-Identifier: Apache-2.0
// What examples/support/sampler.h draws: frequencies beside the probabilities, and what top_k and top_p leave out.
#include "support/sampler.h"

#include <gtest/gtest.h>
#include <map>

namespace {

using support::Sampler;
using support::SamplerOptions;

// Probabilities 1/2, 1/4, 1/8, 1/16, 1/16 out of order.
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
  // Squares of the probabilities, over their sum 0.3359375.
  expectFrequencies({.temperature = 0.5}, {{0, 0.046512}, {1, 0.744186}, {2, 0.011628}, {3, 0.186047}, {4, 0.011628}});
  expectFrequencies({.temperature = 0}, {{1, 1}});
}

TEST(Sampler, KeepsTheLikeliest) {
  expectFrequencies({.top_k = 2}, {{1, 2.0 / 3}, {3, 1.0 / 3}});
  expectFrequencies({.top_k = 1}, {{1, 1}});
  expectFrequencies({.top_k = 99}, {{0, 0.125}, {1, 0.5}, {2, 0.0625}, {3, 0.25}, {4, 0.0625}});
  // Of two that are equal the first stays.
  expectFrequencies({.top_k = 4}, {{0, 2.0 / 15}, {1, 8.0 / 15}, {2, 1.0 / 15}, {3, 4.0 / 15}});
}

TEST(Sampler, KeepsTheNucleus) {
  expectFrequencies({.top_p = 0.5}, {{1, 1}});
  expectFrequencies({.top_p = 0.51}, {{1, 2.0 / 3}, {3, 1.0 / 3}});
  expectFrequencies({.top_p = 0.8}, {{0, 1.0 / 7}, {1, 4.0 / 7}, {3, 2.0 / 7}});
  // Of what top_k left.
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
