// SPDX-License-Identifier: Apache-2.0
//
// Key-value caches of each type: what a decoder says step by step beside what it says of all tokens at once, within
// what the type of the cache leaves of its numbers; and what the caches take of the arena.
#include "cached_blocks.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

constexpr std::int64_t vocabulary = 53, most = CACHED_BLOCKS_STEP_SAME_CONTEXT_MAX;

Session<cached_blocks_t> &session() {
  static Session<cached_blocks_t> only(KILN_TEST_LIBRARY(cached_blocks, CACHED_BLOCKS_WEIGHTS));
  return only;
}

/// A type, what logits may differ in parts of the largest, at most three times what was measured (M-1130), and the
/// arena of a step.
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

/// The largest difference of the logits of the steps, in parts of the largest one.
double difference(const Type &type, const std::vector<std::int64_t> &parts) {
  const std::vector<std::int32_t> text = counterTokens("text", most, vocabulary);
  Output<float> whole(most * vocabulary);
  session().run(type.all, most, Input(text), whole);
  float largest = 0;
  for (float logit : whole.values())
    largest = std::max(largest, std::abs(logit));
  Conversation<cached_blocks_t> talk(session(), 1, CACHED_BLOCKS_STATE_BYTES, type.arenaBytes);
  std::int64_t done = 0;
  double most = 0;
  for (std::int64_t part : parts) {
    const Input<std::int32_t> next(std::vector(text.begin() + done, text.begin() + done + part));
    Output<float> logits(part * vocabulary);
    done += part;
    talk.run(type.step, part, done, next, logits);
    for (std::size_t i = 0; i < logits.values().size(); ++i)
      most = std::max<double>(most, std::abs(logits.values()[i] - whole.values()[(done - part) * vocabulary + i]));
  }
  return most / largest;
}

TEST(CachedBlocks, GoOnFromCallToCall) {
  for (const Type &type : types) {
    const double got = difference(type, {5, 1, 1, 12, 100, 1, 33, most - 153});
    printf("%s: logits differ by %.1e of the largest\n", type.name, got);
    EXPECT_LE(got, type.tolerance) << type.name;
    if (type.tolerance > 1e-4)
      EXPECT_GT(got, type.tolerance / 100) << type.name << ": a cache of fewer bits rounds";
  }
}

// The arena of a step begins with the states of all; what is behind them holds no keys and values in f32, but on GPUs,
// whose kernels keep those of int8 so.
TEST(CachedBlocks, NoCacheIsWidenedInTheArena) {
  for (const Type &type : types)
    if (session().isOnHost() || type.step != cached_blocks_step_whole)
      EXPECT_LE(type.arenaBytes, types[0].arenaBytes + 8192) << type.name;
  const std::size_t elements = std::size_t(most) * (2 * 2 * 36 + 2 * 24),
                    scales = std::size_t(most) * (2 * 2 * 3 + 2 * 2);
  EXPECT_LE(CACHED_BLOCKS_STATE_BYTES, (4 + 2 + 2 + 1) * elements + 4 * scales + 64 * 20);
}

} // namespace
} // namespace kiln::testing
