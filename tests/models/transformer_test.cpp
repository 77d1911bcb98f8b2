// SPDX-License-Identifier: Apache-2.0
// The Transformer of 2017, 6 + 6 blocks, with the counter's weights compared with PyTorch in f64.
#include "golden.h"
#include "session.h"
#include "support.h"
#include "transformer_base.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 1.04e-6.
constexpr double modelTolerance = 3e-6;

constexpr std::int64_t width = 512;
constexpr std::int32_t vocabulary = 37000;

TEST(TransformerBase, AgreesWithPyTorch) {
  Session<transformer_base_t> session(KILN_TEST_LIBRARY(transformer_base, TRANSFORMER_BASE_WEIGHTS));
  const Golden golden("transformer_base.safetensors");
  const std::int64_t cases[][2] = {{1, 1}, {7, 5}, {64, 64}, {128, 100}, {256, 256}};
  for (const auto [source, target] : cases) {
    const std::string name = "S" + std::to_string(source) + "T" + std::to_string(target);
    SCOPED_TRACE(name);
    Output<float> logits(target * vocabulary), memory(source * width);
    session.run(transformer_base_forward, source, target, Input(counterTokens("source", source, vocabulary)),
                Input(counterTokens("target", target, vocabulary)), logits, memory);
    EXPECT_LE(golden.error(name + ".memory", memory.values()), modelTolerance);
    EXPECT_LE(golden.error(name + ".logits", logits.values()), modelTolerance);
  }
}

} // namespace
} // namespace kiln::testing
