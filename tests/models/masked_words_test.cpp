// SPDX-License-Identifier: Apache-2.0
// BERT and RoBERTa with their masked-word heads compared with PyTorch in f64; padding must not affect any word.
#include "bert_words.h"
#include "golden.h"
#include "roberta_words.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 5.4e-7.
constexpr double modelTolerance = 1.6e-6;

constexpr std::int64_t vocabulary = 601;

Session<bert_words_t> &bert() {
  static Session<bert_words_t> only(KILN_TEST_LIBRARY(bert_words, BERT_WORDS_WEIGHTS));
  return only;
}
Session<roberta_words_t> &roberta() {
  static Session<roberta_words_t> only(KILN_TEST_LIBRARY(roberta_words, ROBERTA_WORDS_WEIGHTS));
  return only;
}

TEST(MaskedWords, AgreeWithPyTorch) {
  const Golden golden("masked_words.safetensors");
  for (auto [batch, tokens] : {std::pair{1, 1}, {3, 7}, {2, 64}, {1, BERT_WORDS_FORWARD_TOKENS_MAX}}) {
    const std::string name = "B" + std::to_string(batch) + "T" + std::to_string(tokens);
    SCOPED_TRACE(name);
    const std::int64_t count = batch * tokens;
    const Input ids(counterTokens("tokens", count, vocabulary)), segments(counterTokens("segments", count, 2)),
        lengths(golden.integers(name + ".lengths"));
    Output<float> logits(count * vocabulary);
    bert().run(bert_words_forward, batch, tokens, ids, segments, lengths, logits);
    EXPECT_LE(golden.error("bert." + name + ".logits", logits.values()), modelTolerance);
    Output<float> others(count * vocabulary);
    roberta().run(roberta_words_forward, batch, tokens, ids, lengths, others);
    EXPECT_LE(golden.error("roberta." + name + ".logits", others.values()), modelTolerance);
  }
}

// Tokens at and beyond a sequence's length change no row before, bit for bit, and no other sequence.
TEST(MaskedWords, PaddingDoesNotLeak) {
  constexpr std::int64_t batch = 2, tokens = 19, length = 11, valid = (tokens + length) * vocabulary;
  std::vector<std::int32_t> ids = counterTokens("padding", batch * tokens, vocabulary);
  const Input<std::int32_t> lengths({tokens, length});
  Output<float> before(batch * tokens * vocabulary), after(batch * tokens * vocabulary);
  roberta().run(roberta_words_forward, batch, tokens, Input(ids), lengths, before);
  for (std::int64_t i = tokens + length; i < batch * tokens; ++i)
    ids[i] = (ids[i] + 77) % vocabulary;
  roberta().run(roberta_words_forward, batch, tokens, Input(ids), lengths, after);
  EXPECT_EQ(std::memcmp(before.values().data(), after.values().data(), valid * sizeof(float)), 0);
  EXPECT_GT(relativeError(after.values().subspan(valid), before.values().subspan(valid)), 1e-2);
}

} // namespace
} // namespace kiln::testing
