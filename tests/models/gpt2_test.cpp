// SPDX-License-Identifier: Apache-2.0
// GPT-2 small with the counter's weights compared with PyTorch in f64; later tokens must not affect earlier rows.
#include "golden.h"
#include "gpt2_small.h"
#include "gpt2_writer.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 1.4e-6.
constexpr double modelTolerance = 4e-6;

constexpr std::int64_t vocabulary = 50257;

Session<gpt2_small_t> &session() {
  static Session<gpt2_small_t> only(KILN_TEST_LIBRARY(gpt2_small, GPT2_SMALL_WEIGHTS));
  return only;
}

TEST(Gpt2Small, HasTheParametersOfThePaper) { EXPECT_EQ(GPT2_SMALL_PARAMETERS, 124439808); }

TEST(Gpt2Small, AgreesWithPyTorch) {
  const Golden golden("gpt2.safetensors");
  for (std::int64_t tokens : {1, 7, 64, 128, GPT2_SMALL_FORWARD_TOKENS_MAX}) {
    SCOPED_TRACE(std::to_string(tokens) + " tokens");
    Input<std::int32_t> input(counterTokens("tokens", tokens, vocabulary));
    Output<float> logits(tokens * vocabulary);
    std::vector<std::uint32_t> workers{1, 2, 3};
    if (tokens == GPT2_SMALL_FORWARD_TOKENS_MAX)
      workers = {1, 2};
    session().runWith(workers, gpt2_small_forward, tokens, input, logits);
    EXPECT_LE(golden.error("T" + std::to_string(tokens) + ".logits", logits.values()), modelTolerance);
  }
}

// The rows before a changed token keep their bits; a shorter text gives the same rows up to rounding.
TEST(Gpt2Small, IsCausal) {
  constexpr std::int64_t tokens = 21, changed = 13;
  std::vector<std::int32_t> text = counterTokens("causal", tokens, vocabulary);
  Output<float> before(tokens * vocabulary), after(tokens * vocabulary), prefix(changed * vocabulary);
  session().runWith({2}, gpt2_small_forward, tokens, Input(text), before);
  session().runWith({2}, gpt2_small_forward, changed, Input(std::vector(text.begin(), text.begin() + changed)), prefix);
  for (std::int64_t i = changed; i < tokens; ++i)
    text[i] = (text[i] + 12345) % vocabulary;
  session().runWith({2}, gpt2_small_forward, tokens, Input(text), after);

  std::size_t rows = changed * vocabulary;
  EXPECT_EQ(std::memcmp(before.values().data(), after.values().data(), rows * sizeof(float)), 0);
  EXPECT_GT(relativeError(after.values().subspan(rows), before.values().subspan(rows)), 1e-2);
  EXPECT_LE(relativeError(prefix.values(), before.values().first(rows)), modelTolerance);
}

// With a KV cache, the result is the last row of one pass over all tokens, however the tokens are split into calls.
TEST(Gpt2Writer, GoesOnLikeOnePass) {
  Session<gpt2_writer_t> writer(KILN_TEST_LIBRARY(gpt2_writer, GPT2_WRITER_WEIGHTS));
  const std::vector<std::int32_t> text = counterTokens("tokens", 128, vocabulary);
  Output<float> all(128 * vocabulary);
  session().runWith({2}, gpt2_small_forward, 128, Input(text), all);
  const std::span<const float> expected = all.values().last(vocabulary);
  for (const std::vector<std::int64_t> &parts :
       {std::vector<std::int64_t>{128}, {120, 1, 1, 1, 1, 1, 1, 1, 1}, {3, 100, 24, 1}}) {
    Conversation<gpt2_writer_t> talk(writer, 2, GPT2_WRITER_STATE_BYTES,
                                     std::max(GPT2_WRITER_PREFILL_ARENA_BYTES(2), GPT2_WRITER_DECODE_ARENA_BYTES(2)));
    std::int64_t done = 0;
    Output<float> logits(vocabulary);
    for (std::int64_t part : parts) {
      Input<std::int32_t> next(std::vector(text.begin() + done, text.begin() + done + part));
      done += part;
      if (part == 1)
        talk.run(gpt2_writer_decode, done, next, logits);
      else
        talk.run(gpt2_writer_prefill, part, done, next, logits);
    }
    EXPECT_LE(relativeError(logits.values(), expected), modelTolerance) << parts.size() << " parts";
  }
}

} // namespace
} // namespace kiln::testing
