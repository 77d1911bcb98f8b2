// SPDX-License-Identifier: Apache-2.0
// Attention over long sequences compared with loops in f64, and its memory use.
#include "long_attention.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

Session<long_attention_t> &session() {
  static Session<long_attention_t> only(KILN_TEST_LIBRARY(long_attention, LONG_ATTENTION_WEIGHTS));
  return only;
}

/// Computes attention with two heads of 33 by loops in f64.
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
TEST(LongAttention, AgreesWithLoops) {
  for (std::int64_t n : {1, 63, 513, 1100}) {
    SCOPED_TRACE(n);
    const std::vector<float> x = counterValues("long", n * 66, 2);
    Output<float> full(n * 66), causal(n * 66);
    session().run(long_attention_full, n, Input(x), full);
    session().run(long_attention_causal, n, Input(x), causal);
    EXPECT_LE(relativeError(full.values(), attend(x, n, false)), 4e-6);
    EXPECT_LE(relativeError(causal.values(), attend(x, n, true)), 4e-6);
  }
}

// At the bound of 32768 tokens, the scores of one head would need 4 GiB.
TEST(LongAttention, NeedsMemoryInProportionToTheLength) {
  EXPECT_LE(LONG_ATTENTION_FULL_ARENA_BYTES(1), 32768u * 512);
  EXPECT_LE(LONG_ATTENTION_CAUSAL_ARENA_BYTES(1), 32768u * 512);
}

} // namespace
} // namespace kiln::testing
