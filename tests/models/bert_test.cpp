// SPDX-License-Identifier: Apache-2.0
// BERT-base with the counter's weights compared with PyTorch in f64; padding must never affect a sequence.
#include "bert_base.h"
#include "golden.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 4.4e-6.
constexpr double modelTolerance = 1e-5;

constexpr std::int64_t width = 768;
constexpr std::int32_t vocabulary = 30522;

Session<bert_base_t> &session() {
  static Session<bert_base_t> only(KILN_TEST_LIBRARY(bert_base, BERT_BASE_WEIGHTS));
  return only;
}

TEST(BertBase, AgreesWithPyTorch) {
  const Golden golden("bert_base.safetensors");
  for (std::int64_t batch : {1, 2})
    for (std::int64_t tokens : {1, 7, 64, 128, BERT_BASE_FORWARD_TOKENS_MAX}) {
      const std::string name = "B" + std::to_string(batch) + "T" + std::to_string(tokens);
      SCOPED_TRACE(name);
      Input<std::int32_t> ids(counterTokens("tokens", batch * tokens, vocabulary));
      Input<std::int32_t> segments(counterTokens("segments", batch * tokens, 2));
      Input<std::int32_t> lengths(golden.integers(name + ".lengths"));
      Output<float> hidden(batch * tokens * width), pooled(batch * width);
      std::vector<std::uint32_t> workers{1, 2, 3};
      if (tokens == BERT_BASE_FORWARD_TOKENS_MAX)
        workers = {1, 2};
      session().runWith(workers, bert_base_forward, batch, tokens, ids, segments, lengths, hidden, pooled);
      EXPECT_LE(golden.error(name + ".hidden", hidden.values()), modelTolerance);
      EXPECT_LE(golden.error(name + ".pooled", pooled.values()), modelTolerance);
    }
}

// Changed tokens at and beyond a sequence's length may change the rows there, but no row before, and not the other
// sequence of the batch.
TEST(BertBase, PaddingDoesNotLeak) {
  constexpr std::int64_t batch = 2, tokens = 19, length = 11;
  std::vector<std::int32_t> ids = counterTokens("padding", batch * tokens, vocabulary);
  Input<std::int32_t> segments(counterTokens("segments", batch * tokens, 2));
  Input<std::int32_t> lengths({tokens, length});
  Output<float> before(batch * tokens * width), after(batch * tokens * width), first(batch * width),
      second(batch * width);
  session().runWith({2}, bert_base_forward, batch, tokens, Input(ids), segments, lengths, before, first);
  for (std::int64_t i = tokens + length; i < batch * tokens; ++i)
    ids[i] = (ids[i] + 777) % vocabulary;
  session().runWith({2}, bert_base_forward, batch, tokens, Input(ids), segments, lengths, after, second);

  const std::size_t valid = (tokens + length) * width;
  EXPECT_EQ(std::memcmp(before.values().data(), after.values().data(), valid * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(first.values().data(), second.values().data(), first.values().size_bytes()), 0);
  EXPECT_GT(relativeError(after.values().subspan(valid), before.values().subspan(valid)), 1e-2);
}

} // namespace
} // namespace kiln::testing
