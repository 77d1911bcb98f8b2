// SPDX-License-Identifier: Apache-2.0
// Self-attention: the worked numbers, and f(s(x)) = s(f(x)) for a permutation s of the rows.
#include "golden.h"
#include "self_attention.h"
#include "session.h"
#include "support.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace kiln::testing {
namespace {

Session<self_attention_t> &session() {
  static Session<self_attention_t> only(KILN_TEST_LIBRARY(self_attention, SELF_ATTENTION_WEIGHTS));
  return only;
}

TEST(SelfAttention, GivesTheWorkedNumbers) {
  const Golden golden("worked_attention.safetensors");
  for (const std::string sentence : {"S1", "S2", "S3"}) {
    SCOPED_TRACE(sentence);
    Input<float> x(golden.floats(sentence + ".x"));
    const std::int64_t n = static_cast<std::int64_t>(x.values.size()) / 2;
    Output<float> scores(n * n), weights(n * n), byHand(n * 2), y(n * 2);
    session().run(self_attention_worked, n, x, scores, weights, byHand, y);
    EXPECT_LE(relativeError(scores.values(), golden.floats(sentence + ".scores")), 1e-6);
    EXPECT_LE(relativeError(weights.values(), golden.floats(sentence + ".weights")), 1e-5); // scores up to 28
    EXPECT_LE(relativeError(byHand.values(), golden.floats(sentence + ".y")), 1e-5);
    EXPECT_LE(relativeError(y.values(), golden.floats(sentence + ".y")), 1e-5);
  }
}

// The rows as a person reads them: goat among farm words, goat among footballers.
TEST(SelfAttention, PullsGoatTowardsItsSentence) {
  auto goat = [](std::vector<float> sentence, std::int64_t row) {
    const std::int64_t n = static_cast<std::int64_t>(sentence.size()) / 2;
    Output<float> scores(n * n), weights(n * n), byHand(n * 2), y(n * 2);
    session().run(self_attention_worked, n, Input<float>(std::move(sentence)), scores, weights, byHand, y);
    return std::pair(y.values()[2 * row], y.values()[2 * row + 1]);
  };
  auto [farmX, farmY] = goat({1, 1, 4, 0, 0, 0, 2.5, 2.5, 5, 0}, 3);
  EXPECT_NEAR(farmX, 3.7631, 5e-5);
  EXPECT_NEAR(farmY, 1.1513, 5e-5);
  auto [ballX, ballY] = goat({0, 5, 1, 1, 2.5, 2.5, 0, 0, 0, 4}, 2);
  EXPECT_NEAR(ballX, 1.1513, 5e-5);
  EXPECT_NEAR(ballY, 3.7631, 5e-5);
}

TEST(SelfAttention, IsPermutationEquivariant) {
  constexpr std::int64_t width = 24;
  for (std::int64_t n : {1, 2, 5, 16, 33, 40}) {
    SCOPED_TRACE(n);
    std::vector<float> x(n * width), permuted(n * width), expected(n * width);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = counter_uniform("permutation", i);
    std::vector<std::int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(&x[order[i] * width], width, &permuted[i * width]);
    Output<float> y(n * width), z(n * width);
    session().run(self_attention_project, n, Input(x), y);
    session().run(self_attention_project, n, Input(permuted), z);
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(&y.values()[order[i] * width], width, &expected[i * width]);
    EXPECT_LE(relativeError(z.values(), expected), 2e-6); // only the order of the sums differs
  }
}

/// Attention of two heads of 33 by loops in f64.
std::vector<float> attend(const std::vector<float> &x, std::int64_t n, bool isCausal) {
  constexpr std::int64_t heads = 2, depth = 33, width = heads * depth;
  std::vector<float> y(n * width);
  std::vector<double> score(n);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t keys = isCausal ? i + 1 : n;
      double largest = -INFINITY, sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        double dot = 0;
        for (std::int64_t d = h * depth; d < (h + 1) * depth; ++d)
          dot += double(x[i * width + d]) * x[j * width + d];
        score[j] = dot / std::sqrt(double(depth));
        largest = std::max(largest, score[j]);
      }
      std::vector<double> row(depth);
      for (std::int64_t j = 0; j < keys; ++j) {
        const double weight = std::exp(score[j] - largest);
        sum += weight;
        for (std::int64_t d = 0; d < depth; ++d)
          row[d] += weight * x[j * width + h * depth + d];
      }
      for (std::int64_t d = 0; d < depth; ++d)
        y[i * width + h * depth + d] = static_cast<float>(row[d] / sum);
    }
  return y;
}

// Several blocks of keys, with any number of workers.
TEST(SelfAttention, OfLongSequences) {
  for (std::int64_t n : {1, 63, 513, 1100}) {
    SCOPED_TRACE(n);
    std::vector<float> x(n * 66);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = 2 * counter_uniform("long", i);
    Output<float> full(n * 66), causal(n * 66);
    session().run(self_attention_long_full, n, Input(x), full);
    session().run(self_attention_long_causal, n, Input(x), causal);
    EXPECT_LE(relativeError(full.values(), attend(x, n, false)), 4e-6);
    EXPECT_LE(relativeError(causal.values(), attend(x, n, true)), 4e-6);
  }
}

// At the bound of 32768 tokens the scores of one head would be 4 GiB.
TEST(SelfAttention, NeedsMemoryInProportionToTheLength) {
  EXPECT_LE(SELF_ATTENTION_LONG_FULL_ARENA_BYTES(1), 32768u * 512);
  EXPECT_LE(SELF_ATTENTION_LONG_CAUSAL_ARENA_BYTES(1), 32768u * 512);
}

} // namespace
} // namespace kiln::testing
