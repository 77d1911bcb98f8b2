// SPDX-License-Identifier: Apache-2.0
// ViT-B/16 with the counter's weights against PyTorch in f64.
#include "golden.h"
#include "session.h"
#include "support.h"
#include "vit_base.h"

namespace kiln::testing {
namespace {

// PyTorch's own f32 is 1e-5 from f64 here, ten times as far as with the other models: the logits are small.
constexpr double tolerance = 4e-5;

TEST(VitBase, HasTheParametersOfThePaper) { EXPECT_EQ(VIT_BASE_PARAMETERS, 86567656); }

TEST(VitBase, AgreesWithPyTorch) {
  const Golden golden("vit_base.safetensors");
  Session<vit_base_t> session(KILN_TEST_LIBRARY(vit_base, VIT_BASE_WEIGHTS));
  std::vector<float> pixels(3 * 224 * 224);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = counter_uniform("image", i);
  Output<float> logits(1000);
  session.run(vit_base_forward, Input(pixels), logits);
  EXPECT_LE(golden.error("image.logits", logits.values()), tolerance);
}

} // namespace
} // namespace kiln::testing
