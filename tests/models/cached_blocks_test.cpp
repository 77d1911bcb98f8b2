// SPDX-License-Identifier: Apache-2.0
//
// KV caches of each element type: the decoder's logits step by step are compared with those of all tokens at once,
// within the precision of the cache's type; caches of a window; and the size of the caches in the arena.
#include "cached_blocks.h"
#include "session.h"
#include "support.h"

#include <cmath>
#include <numeric>

namespace kiln::testing {
namespace {

constexpr std::int64_t vocabulary = 53, most = CACHED_BLOCKS_STEP_SAME_CONTEXT_MAX;

Session<cached_blocks_t> &session() {
  static Session<cached_blocks_t> only(KILN_TEST_LIBRARY(cached_blocks, CACHED_BLOCKS_WEIGHTS));
  return only;
}

/// A cache type; the tolerance of logits relative to the largest one, at most three times the measured error (M-1130);
/// and the arena of a step.
struct Type {
  const char *name;
  double tolerance;
  decltype(&cached_blocks_all_same) all;
  decltype(&cached_blocks_step_same) step;
  std::size_t arenaBytes;
};
const Type types[] = {
    {"same", 1e-5, cached_blocks_all_same, cached_blocks_step_same, CACHED_BLOCKS_STEP_SAME_ARENA_BYTES(1)},
    {"half", 3e-3, cached_blocks_all_half, cached_blocks_step_half, CACHED_BLOCKS_STEP_HALF_ARENA_BYTES(1)},
    {"bfloat", 3e-2, cached_blocks_all_bfloat, cached_blocks_step_bfloat, CACHED_BLOCKS_STEP_BFLOAT_ARENA_BYTES(1)},
    {"whole", 4e-2, cached_blocks_all_whole, cached_blocks_step_whole, CACHED_BLOCKS_STEP_WHOLE_ARENA_BYTES(1)}};

/// Returns the largest difference of the logits of steps with these numbers of tokens, relative to the largest logit.
double difference(const Type &type, const std::vector<std::int64_t> &parts) {
  const std::int64_t tokens = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  const std::vector<std::int32_t> text = counterTokens("text", tokens, vocabulary);
  Output<float> whole(tokens * vocabulary);
  session().run(type.all, tokens, Input(text), whole);
  float largest = 0;
  for (float logit : whole.values())
    largest = std::max(largest, std::abs(logit));
  Conversation<cached_blocks_t> talk(session(), 1, CACHED_BLOCKS_STATE_BYTES, type.arenaBytes);
  std::int64_t done = 0;
  double off = 0;
  for (std::int64_t part : parts) {
    const Input<std::int32_t> next(std::vector(text.begin() + done, text.begin() + done + part));
    Output<float> logits(part * vocabulary);
    done += part;
    talk.run(type.step, part, done, next, logits);
    for (std::size_t i = 0; i < logits.values().size(); ++i)
      off = std::max<double>(off, std::abs(logits.values()[i] - whole.values()[(done - part) * vocabulary + i]));
  }
  return off / largest;
}

TEST(CachedBlocks, GoOnFromCallToCall) {
  for (const Type &type : types) {
    const double got = difference(type, {5, 1, 1, 12, 40, 1, session().isOnHost() ? most - 60 : 20});
    printf("%s: logits differ by %.1e of the largest\n", type.name, got);
    EXPECT_LE(got, type.tolerance) << type.name;
    if (type.tolerance > 1e-4)
      EXPECT_GT(got, type.tolerance / 100) << type.name << ": a cache of fewer bits rounds";
  }
}

/// Quantises rows to int8 per head and dequantises them, with the arithmetic of dsl/SPEC.md.
std::vector<double> kept(const std::vector<float> &rows, std::size_t depth) {
  std::vector<double> result;
  for (std::size_t first = 0; first < rows.size(); first += depth) {
    float largest = 0;
    for (std::size_t i = first; i < first + depth; ++i)
      largest = std::max(largest, std::abs(rows[i]));
    const float scale = std::max(largest / 127, 1e-30f);
    for (std::size_t i = first; i < first + depth; ++i)
      result.push_back(std::nearbyint(rows[i] / scale) * scale);
  }
  return result;
}

/// Returns the attention result of the last query so far.
std::vector<double> attended(const float *query, const std::vector<double> &keys, const std::vector<double> &values,
                             std::size_t count) {
  constexpr std::size_t heads = 4, depth = 5, shared = 2;
  std::vector<double> result(heads * depth);
  for (std::size_t h = 0; h < heads; ++h) {
    std::vector<double> weights(count);
    double sum = 0;
    auto at = [&](std::size_t t, std::size_t d) { return t * heads / shared * depth + h / shared * depth + d; };
    for (std::size_t t = 0; t < count; ++t) {
      double score = 0;
      for (std::size_t d = 0; d < depth; ++d)
        score += query[h * depth + d] * keys[at(t, d)] / std::sqrt(double(depth));
      sum += weights[t] = std::exp(score);
    }
    for (std::size_t t = 0; t < count; ++t)
      for (std::size_t d = 0; d < depth; ++d)
        result[h * depth + d] += weights[t] / sum * values[at(t, d)];
  }
  return result;
}

// Heads that are all zeros, tiny or huge; one query, a few, and many.
TEST(CachedBlocks, IntegersTimesAScale) {
  constexpr std::size_t rows = 130, width = 10, queryWidth = 20;
  std::vector<float> q = counterValues("q", rows * queryWidth, 2), k = counterValues("k", rows * width, 2),
                     v = counterValues("v", rows * width, 2);
  for (std::size_t i = 0; i < 5; ++i) {
    k[3 * width + i] = 0, v[4 * width + i] = 0;
    v[6 * width + i] *= 1e-12F, v[7 * width + i] *= 1e12F;
    k[7 * width + i] = -50 * q[(rows - 1) * queryWidth + i]; // hardly attended to
  }
  const std::vector<double> keys = kept(k, 5), values = kept(v, 5);
  Conversation<cached_blocks_t> talk(session(), 1, CACHED_BLOCKS_STATE_BYTES, CACHED_BLOCKS_LOOK_ARENA_BYTES(1));
  std::size_t done = 0;
  for (std::size_t part : {std::size_t{2}, std::size_t{1}, std::size_t{9}, std::size_t{1}, rows - 13}) {
    auto rowsOf = [&](const std::vector<float> &all, std::size_t wide) {
      return Input(std::vector(all.begin() + done * wide, all.begin() + (done + part) * wide));
    };
    const auto queries = rowsOf(q, queryWidth), newKeys = rowsOf(k, width), newValues = rowsOf(v, width);
    Output<float> y(part * queryWidth);
    talk.run(cached_blocks_look, std::int64_t(part), std::int64_t(done + part), queries, newKeys, newValues, y);
    for (std::size_t i = 0; i < part; ++i) {
      const std::vector<double> expected = attended(&q[(done + i) * queryWidth], keys, values, done + i + 1);
      for (std::size_t c = 0; c < queryWidth; ++c)
        ASSERT_NEAR(y.values()[i * queryWidth + c], expected[c], 1e-5 * (2 + std::abs(expected[c]))) << done + i;
    }
    done += part;
  }
}

// Calls of one row, of fewer rows than the window and of more; the first ones have fewer rows than the window so far.
TEST(CachedBlocks, Windows) {
  constexpr std::int64_t rows = 150, width = 10, queryWidth = 20;
  const std::vector<float> q = counterValues("q", rows * queryWidth, 2), k = counterValues("k", rows * width, 2),
                           v = counterValues("v", rows * width, 2);
  Output<float> whole(rows * queryWidth);
  session().run(cached_blocks_all_windowed, rows, Input(q), Input(k), Input(v), whole);
  const std::size_t bytes =
      std::max(CACHED_BLOCKS_STEP_WINDOWED_ARENA_BYTES(1), CACHED_BLOCKS_STEP_SLIDING_ARENA_BYTES(1));
  for (const auto step : {cached_blocks_step_windowed, cached_blocks_step_sliding}) {
    SCOPED_TRACE(step == cached_blocks_step_sliding ? "of the window's rows" : "of all rows");
    Conversation<cached_blocks_t> talk(session(), 1, CACHED_BLOCKS_STATE_BYTES, bytes);
    std::int64_t done = 0;
    for (std::int64_t part : {3, 1, 1, 20, 1, 50, 1, 1, 72}) {
      auto rowsOf = [&](const std::vector<float> &all, std::int64_t wide) {
        return Input(std::vector(all.begin() + done * wide, all.begin() + (done + part) * wide));
      };
      Output<float> y(part * queryWidth);
      talk.run(step, part, done + part, rowsOf(q, queryWidth), rowsOf(k, width), rowsOf(v, width), y);
      for (std::int64_t i = 0; i < part * queryWidth; ++i)
        ASSERT_NEAR(y.values()[i], whole.values()[done * queryWidth + i], 1e-5) << done + i / queryWidth;
      done += part;
    }
    ASSERT_EQ(done, rows);
  }
}

// The arena of a step begins with all states. The rest has no room for one layer's keys in f32, except on GPUs, whose
// kernels dequantise int8 keys there. Workers copy the keys of a head.
TEST(CachedBlocks, NoCacheIsWidenedInTheArena) {
  for (const Type &type : types)
    if (session().isOnHost() || type.step != cached_blocks_step_whole)
      EXPECT_LT(type.arenaBytes, types[0].arenaBytes + most * 36 * sizeof(float)) << type.name;
  const std::size_t elements = std::size_t(most) * (2 * 2 * 36 + 2 * 24),
                    scales = std::size_t(most) * (2 * 2 * 3 + 2 * 2);
  EXPECT_LE(CACHED_BLOCKS_STATE_BYTES,
            (4 + 2 + 2 + 1) * elements + 4 * scales + std::size_t(most) * 2 * (10 + 4 * 2) + // with integers
                (most + 2 * 36 + most) * 2 * 10 * sizeof(float) + 64 * 28);                  // and with windows
}

} // namespace
} // namespace kiln::testing
