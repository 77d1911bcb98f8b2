// SPDX-License-Identifier: Apache-2.0
// The attention layers of examples/attention_layers: every entry and its attention weights compared with PyTorch,
// examples that can be computed by hand, and permutation equivariance: f(s(x)) = s(f(x)) for a permutation s of the
// inputs.
#include "attention_layers.h"
#include "golden.h"
#include "session.h"
#include "support.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 1.1e-6.
constexpr double modelTolerance = 3e-6;

constexpr std::int64_t width = 24, out = 28;

Session<attention_layers_t> &session() {
  static Session<attention_layers_t> only(KILN_TEST_LIBRARY(attention_layers, ATTENTION_LAYERS_WEIGHTS));
  return only;
}

/// Runs an entry with outputs y and attention weights of these numbers of rows and columns, and compares both.
class Cases {
public:
  Cases(std::int64_t b, std::int64_t n) : suffix(".B" + std::to_string(b) + "N" + std::to_string(n)) {}

  template <class Entry, class... Arguments>
  void run(const std::string &name, Entry entry, std::int64_t rows, std::int64_t columns, std::int64_t weightRows,
           std::int64_t inputs, const Arguments &...arguments) const {
    SCOPED_TRACE(name + suffix);
    static const Golden golden("attention_layers.safetensors");
    Output<float> y(rows * columns), weights(weightRows * inputs);
    session().run(entry, arguments..., y, weights);
    EXPECT_LE(golden.error(name + suffix + ".y", y.values()), modelTolerance);
    EXPECT_LE(golden.error(name + suffix + ".weights", weights.values()), modelTolerance);
  }

private:
  std::string suffix;
};

TEST(AttentionLayers, AgreeWithPyTorch) {
  struct Size {
    std::int64_t b, n, m;
  };
  for (auto [b, n, m] : {Size{1, 1, 1}, Size{3, 7, 5}, Size{2, ATTENTION_LAYERS_CAUSAL_INPUTS_MAX, 48}}) {
    const Cases cases(b, n);
    const std::vector<float> many = counterValues("queries", b * m * 20, 2), all = counterValues("x", b * n * width, 2);
    std::vector<float> one, forbidding = counterValues("mask", n * n);
    for (std::int64_t i = 0; i < b; ++i)
      one.insert(one.end(), &many[i * m * 20], &many[i * m * 20] + 20);
    for (std::int64_t i = 0; i < n * n; ++i)
      if (i % 3 == 1 && i % n > 0)
        forbidding[i] = -std::numeric_limits<float>::infinity();
    const Input x(all), query(counterValues("query", b * width)), queries(many), small(one), mask(forbidding),
        first(std::vector(all.begin(), all.begin() + n * width));

    cases.run("additive", attention_layers_additive, b, width, b, n, b, n, small, x);
    cases.run("dot", attention_layers_dot, b, width, b, n, b, n, query, x);
    cases.run("scaled_dot", attention_layers_scaled_dot, b, width, b, n, b, n, query, x);
    cases.run("many_queries", attention_layers_many_queries, b * m, out, b * m, n, b, n, m, queries, x);
    cases.run("self_attention", attention_layers_self_attention, b * n, out, b * n, n, b, n, x);
    cases.run("learned_positions", attention_layers_learned_positions, b * n, out, b * n, n, b, n, x);
    cases.run("sine_positions", attention_layers_sine_positions, b * n, out, b * n, n, b, n, x);
    cases.run("joined_positions", attention_layers_joined_positions, n, out, n, n, n, first);
    cases.run("causal", attention_layers_causal, b * n, out, b * n, n, b, n, x);
    cases.run("masked", attention_layers_masked, b * n, out, b * n, n, b, n, x, mask);
    cases.run("image_attention", attention_layers_image_attention, b * 42, width, b * 42, 42, b,
              Input(counterValues("pixels", b * 42 * width, 2)));
    cases.run("multi_head", attention_layers_multi_head, b * n, width, b * 3 * n, n, b, n, x);
  }
}

/// The results of the entry `words` for vectors of two numbers.
struct Words {
  explicit Words(std::vector<float> vectors)
      : n(static_cast<std::int64_t>(vectors.size()) / 2), scores(n * n), weights(n * n), y(n * 2) {
    session().run(attention_layers_words, n, Input(std::move(vectors)), scores, weights, y);
  }
  std::int64_t n;
  Output<float> scores, weights, y;
};

TEST(AttentionLayers, GiveTheWorkedNumbers) {
  const Golden golden("worked_attention.safetensors");
  for (const std::string sentence : {"S1", "S2", "S3"}) {
    SCOPED_TRACE(sentence);
    Words words(golden.floats(sentence + ".x"));
    EXPECT_LE(relativeError(words.scores.values(), golden.floats(sentence + ".scores")), 1e-6);
    EXPECT_LE(relativeError(words.weights.values(), golden.floats(sentence + ".weights")), 1e-5); // scores up to 28
    EXPECT_LE(relativeError(words.y.values(), golden.floats(sentence + ".y")), 1e-5);
  }
}

void expectRow(std::span<const float> row, const std::vector<double> &expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(row[i], expected[i], tolerance) << "column " << i;
}

// The rows as a reader interprets them: goat among farm words, goat among footballers, Messi next to his peers.
TEST(AttentionLayers, PullWordsTowardsTheirSentence) {
  Words farm({1, 1, 4, 0, 0, 0, 2.5, 2.5, 5, 0});
  expectRow(farm.y.values().subspan(3 * 2, 2), {3.7631, 1.1513}, 5e-5);
  Words football({0, 5, 1, 1, 2.5, 2.5, 0, 0, 0, 4});
  expectRow(football.y.values().subspan(2 * 2, 2), {1.1513, 3.7631}, 5e-5);
  expectRow(football.weights.values().subspan(2 * 5, 5), {0.4596, 0.0023, 0.4596, 0.0001, 0.0785}, 5e-5);
  Words messi({6, 2, 1, 1, 1, 1, 5, 3, 0, 0, 1, 0, 4, 2});
  expectRow(messi.scores.values().first(7), {28.28, 5.66, 5.66, 25.46, 0, 4.24, 19.80}, 5e-3);
  expectRow(messi.weights.values().first(7), {0.944, 0, 0, 0.056, 0, 0, 0}, 5e-4);
}

TEST(AttentionLayers, AreEquivariantUnderPermutations) {
  for (std::int64_t n : {1, 2, 5, 16, 33, 64}) {
    SCOPED_TRACE(n);
    std::vector<std::int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    auto permuted = [&](std::span<const float> rows, std::int64_t columns) {
      std::vector<float> result(n * columns);
      for (std::int64_t i = 0; i < n; ++i)
        std::copy_n(&rows[order[i] * columns], columns, &result[i * columns]);
      return result;
    };
    const std::vector<float> x = counterValues("permutation", n * width);
    Output<float> y(n * out), z(n * out), weights(n * n), heads(n * width), permutedHeads(n * width),
        headWeights(3 * n * n);
    session().run(attention_layers_self_attention, 1, n, Input(x), y, weights);
    session().run(attention_layers_self_attention, 1, n, Input(permuted(x, width)), z, weights);
    EXPECT_LE(relativeError(z.values(), permuted(y.values(), out)), 2e-6); // only the summation order differs
    session().run(attention_layers_multi_head, 1, n, Input(x), heads, headWeights);
    session().run(attention_layers_multi_head, 1, n, Input(permuted(x, width)), permutedHeads, headWeights);
    EXPECT_LE(relativeError(permutedHeads.values(), permuted(heads.values(), width)), 2e-6);
  }
}

// A changed input changes no earlier output, bit for bit, but changes the later ones.
TEST(AttentionLayers, CausalOnesDoNotLookAhead) {
  constexpr std::int64_t n = 37, changed = 20;
  std::vector<float> x = counterValues("causal", n * width);
  Output<float> before(n * out), after(n * out), weights(n * n);
  session().run(attention_layers_causal, 1, n, Input(x), before, weights);
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t column = row + 1; column < n; ++column)
      EXPECT_EQ(weights.values()[row * n + column], 0);
  for (std::int64_t i = changed * width; i < n * width; ++i)
    x[i] += 1;
  session().run(attention_layers_causal, 1, n, Input(x), after, weights);
  EXPECT_EQ(std::memcmp(before.values().data(), after.values().data(), changed * out * sizeof(float)), 0);
  EXPECT_GT(relativeError(after.values().subspan(changed * out), before.values().subspan(changed * out)), 1e-2);
}

} // namespace
} // namespace kiln::testing
