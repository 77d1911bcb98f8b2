// SPDX-License-Identifier: Apache-2.0
// A model's outputs have the same bits without an executor, with the bundled pool, and with each adapter.
#include "adapters.h"

#include "char_gpt.h"
#include "session.h"
#include "support.h"

namespace kiln::testing {
namespace {

constexpr std::int64_t tokens = CHAR_GPT_FORWARD_TOKENS_MAX, vocabulary = 63;

class Models : public ::testing::Test {
protected:
  std::vector<float> forward(const kiln_executor_t *executor) {
    std::vector<float> logits(tokens * vocabulary, NAN);
    GuardedMemory arena(CHAR_GPT_FORWARD_ARENA_BYTES(executor ? executor->workers : 1), Guard::front);
    kiln_error_t error{};
    const kiln_call_t call{arena.data(), arena.size(), executor, &error};
    EXPECT_EQ(char_gpt_forward(session.get(), &call, tokens, words.data(), logits.data()), KILN_OK) << error.message;
    return logits;
  }
  void expectSameBits(const kiln_executor_t *executor) {
    const std::vector<float> logits = forward(executor);
    EXPECT_EQ(std::memcmp(logits.data(), serial.data(), serial.size() * sizeof(float)), 0);
  }

  Session<char_gpt_t> session{KILN_TEST_LIBRARY(char_gpt, CHAR_GPT_WEIGHTS)};
  std::vector<std::int32_t> words = counterTokens("tokens", tokens, vocabulary);
  std::vector<float> serial = forward(nullptr);
};

TEST_F(Models, AreTheSameWithTheBundledPool) {
  for (std::uint32_t workers : {2u, 3u})
    expectSameBits(session.executor(workers));
}

/// An executor that counts the loops that another one runs.
struct Counted {
  const kiln_executor_t *counted;
  kiln_executor_t executor{this, counted->workers, run};
  int loops = 0;

  static void run(void *self, std::uint32_t count, void (*task)(void *, std::uint32_t, std::uint32_t), void *context) {
    auto &counter = *static_cast<Counted *>(self);
    ++counter.loops;
    counter.counted->parallel_for(counter.counted->self, count, task, context);
  }
};

TEST_F(Models, AreTheSameWithEachAdapter) {
  int made = 0;
  for (const kiln_test::Adapter &adapter : kiln_test::adapters)
    for (std::uint32_t workers : {1u, 2u, 3u, 5u})
      if (const auto executor = adapter.make(workers)) {
        SCOPED_TRACE(std::string(adapter.name) + ", " + std::to_string(workers) + " workers");
        Counted counted{executor.get()};
        expectSameBits(&counted.executor);
        EXPECT_EQ(counted.loops > 10, workers > 1) << counted.loops;
        ++made;
      }
  EXPECT_GE(made, 8); // at least the two adapters that need no library
}

} // namespace
} // namespace kiln::testing
