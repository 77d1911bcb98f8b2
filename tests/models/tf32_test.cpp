// SPDX-License-Identifier: Apache-2.0
//
// A small GPT in f32, and with factors that may be rounded to tf32, compared with the interpreter in f64.
#include "session.h"
#include "specs/char_gpt.h"
#include "support.h"
#include "tests/interpreter/traced.h"
#include "tiny_gpt_f32.h"
#include "tiny_gpt_tf32.h"

namespace kiln::testing {
namespace {

constexpr std::int64_t vocabulary = 61;
using Spec = specs::CharGpt<3, 28, 2, vocabulary>;

/// Returns the largest difference from f64, relative to the largest logit.
template <class Handle>
double error(Library<Handle> library, std::int64_t tokens,
             kiln_status_t (*forward)(const Handle *, const kiln_call_t *, std::int64_t, const std::int32_t *,
                                      float *)) {
  const Input input(counterTokens("tokens", tokens, vocabulary));
  Session<Handle> session(std::move(library));
  Output<float> logits(tokens * vocabulary);
  session.run(forward, tokens, input, logits);
  interpreter::Traced<interpreter::SampledInterpreter> oracle(trace<Spec>());
  const interpreter::Tensor expected =
      oracle.run("forward", {{"characters", tokens}}, {interpreter::integers({tokens}, input.values)})[0];
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    largest = std::max(largest, std::abs(expected.values[i]));
    difference = std::max(difference, std::abs(logits.values()[i] - expected.values[i]));
  }
  std::printf("%lld tokens: %.1e of the largest logit\n", static_cast<long long>(tokens), difference / largest);
  return difference / largest;
}

// Tf32 has ten fraction bits instead of 23, in matrix products and attention only; the tolerance is at most three times
// the measured error (M-1354).
TEST(Tf32, IsWithinItsToleranceAndInEffect) {
  for (std::int64_t tokens : {17, 100}) {
    SCOPED_TRACE(tokens);
    EXPECT_LE(error(KILN_TEST_LIBRARY(tiny_gpt_f32, TINY_GPT_F32_WEIGHTS), tokens, tiny_gpt_f32_forward), 5e-6);
    const double rounded =
        error(KILN_TEST_LIBRARY(tiny_gpt_tf32, TINY_GPT_TF32_WEIGHTS), tokens, tiny_gpt_tf32_forward);
    EXPECT_LE(rounded, 1e-2);
    EXPECT_GE(rounded, 2e-5) << "nothing was rounded";
  }
}

// With at most eight rows, products are memory-bound and run on CUDA cores without rounding.
TEST(Tf32, LeavesSkinnyGemmsAsTheyAre) {
  EXPECT_LE(error(KILN_TEST_LIBRARY(tiny_gpt_tf32, TINY_GPT_TF32_WEIGHTS), 5, tiny_gpt_tf32_forward), 5e-6);
}

} // namespace
} // namespace kiln::testing
