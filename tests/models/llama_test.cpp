// SPDX-License-Identifier: Apache-2.0
// The small Llama of examples/llama with the counter's weights compared with PyTorch in f64; later tokens must not
// affect earlier rows.
#include "golden.h"
#include "llama.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 4.6e-6.
constexpr double modelTolerance = 1e-5;

constexpr std::int64_t vocabulary = 512;

Session<llama_t> &session() {
  static Session<llama_t> only(KILN_TEST_LIBRARY(llama, LLAMA_WEIGHTS));
  return only;
}

TEST(Llama, AgreesWithPyTorch) {
  const Golden golden("llama.safetensors");
  for (auto [batch, tokens] : {std::pair{1, 1}, {3, 7}, {2, 64}, {1, 129}, {1, LLAMA_FORWARD_TOKENS_MAX}}) {
    const std::string name = "B" + std::to_string(batch) + "T" + std::to_string(tokens);
    SCOPED_TRACE(name);
    Output<float> logits(batch * tokens * vocabulary);
    session().run(llama_forward, batch, tokens, Input(counterTokens("tokens", batch * tokens, vocabulary)), logits);
    EXPECT_LE(golden.error(name + ".logits", logits.values()), modelTolerance);
  }
}

// The rows before a changed token keep their bits; a shorter text gives the same rows up to rounding.
TEST(Llama, IsCausal) {
  constexpr std::int64_t tokens = 21, changed = 13;
  std::vector<std::int32_t> text = counterTokens("causal", tokens, vocabulary);
  Output<float> before(tokens * vocabulary), after(tokens * vocabulary), prefix(changed * vocabulary);
  session().run(llama_forward, 1, tokens, Input(text), before);
  session().run(llama_forward, 1, changed, Input(std::vector(text.begin(), text.begin() + changed)), prefix);
  for (std::int64_t i = changed; i < tokens; ++i)
    text[i] = (text[i] + 123) % vocabulary;
  session().run(llama_forward, 1, tokens, Input(text), after);

  constexpr std::size_t rows = changed * vocabulary;
  EXPECT_EQ(std::memcmp(before.values().data(), after.values().data(), rows * sizeof(float)), 0);
  EXPECT_GT(relativeError(after.values().subspan(rows), before.values().subspan(rows)), 1e-2);
  EXPECT_LE(relativeError(prefix.values(), before.values().first(rows)), modelTolerance);
}

// Each sequence of a batch has the same logits as by itself.
TEST(Llama, SequencesOfABatchAreApart) {
  constexpr std::int64_t tokens = 33, each = tokens * vocabulary;
  const std::vector<std::int32_t> text = counterTokens("batch", 2 * tokens, vocabulary);
  Output<float> both(2 * each), second(each);
  session().run(llama_forward, 2, tokens, Input(text), both);
  session().run(llama_forward, 1, tokens, Input(std::vector(text.begin() + tokens, text.end())), second);
  EXPECT_LE(relativeError(both.values().subspan(each), second.values()), 1e-6);
}

} // namespace
} // namespace kiln::testing
