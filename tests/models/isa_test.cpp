// SPDX-License-Identifier: Apache-2.0
// One model compiled separately for each instruction set: the libraries agree up to rounding, and the library with all
// of them gives the bits of the best instruction set of this CPU.
#include "../levels.h"
#include "session.h"
#include "support.h"
#include "tiny_gpt.h"
#include "tiny_gpt_v2.h"
#include "tiny_gpt_v3.h"
#if __has_include("tiny_gpt_v4.h")
#include "tiny_gpt_v4.h"
#endif

namespace kiln::testing {
namespace {

constexpr std::int32_t vocabulary = 61;

/// Returns the logits of one library, or nothing if the CPU lacks its instruction set.
template <class Handle>
std::vector<float> run(Library<Handle> library, std::int64_t tokens,
                       kiln_status_t (*forward)(const Handle *, const kiln_call_t *, std::int64_t, const std::int32_t *,
                                                float *)) {
  Handle *probe = nullptr;
  kiln_status_t status = library.create(nullptr, &probe, nullptr);
  library.destroy(probe);
  if (status == KILN_UNSUPPORTED_CPU)
    return {};
  Session<Handle> session(std::move(library));
  Output<float> logits(tokens * vocabulary);
  session.run(forward, tokens, Input(counterTokens("isa", tokens, vocabulary)), logits);
  return {logits.values().begin(), logits.values().end()};
}

TEST(InstructionSets, Agree) {
  for (std::int64_t tokens : {1, 2, 3, 5, 8, 16, 17, 31, 100, 256}) {
    SCOPED_TRACE(tokens);
    auto all = run(KILN_TEST_LIBRARY(tiny_gpt, TINY_GPT_WEIGHTS), tokens, tiny_gpt_forward);
    std::vector<float> v4;
#ifdef TINY_GPT_V4_ISAS
    v4 = run(KILN_TEST_LIBRARY(tiny_gpt_v4, TINY_GPT_V4_WEIGHTS), tokens, tiny_gpt_v4_forward);
#endif
    auto v3 = run(KILN_TEST_LIBRARY(tiny_gpt_v3, TINY_GPT_V3_WEIGHTS), tokens, tiny_gpt_v3_forward);
    auto v2 = run(KILN_TEST_LIBRARY(tiny_gpt_v2, TINY_GPT_V2_WEIGHTS), tokens, tiny_gpt_v2_forward);
    ASSERT_FALSE(v2.empty()) << KILN_V2 " is expected of every machine that runs the tests";
    if (!v3.empty()) {
      EXPECT_LE(relativeError(v3, v2), 5e-6);
    }
    if (!v4.empty()) {
      EXPECT_LE(relativeError(v4, v2), 5e-6);
    }
    EXPECT_EQ(all, !v4.empty() ? v4 : !v3.empty() ? v3 : v2);
  }
}

TEST(InstructionSets, AreNamedInTheHeader) {
#ifdef TINY_GPT_V4_ISAS
  EXPECT_STREQ(TINY_GPT_ISAS, "x86-64-v4 " KILN_V3 " " KILN_V2);
  EXPECT_STREQ(TINY_GPT_V4_ISAS, "x86-64-v4");
#else
  EXPECT_STREQ(TINY_GPT_ISAS, KILN_V3 " " KILN_V2);
#endif
  EXPECT_STREQ(TINY_GPT_V3_ISAS, KILN_V3);
  EXPECT_STREQ(TINY_GPT_V2_ISAS, KILN_V2);
}

} // namespace
} // namespace kiln::testing
