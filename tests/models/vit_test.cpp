// SPDX-License-Identifier: Apache-2.0
// ViT-B/16 and DeiT-Ti/16 with the counter's weights compared with PyTorch in f64.
#include "deit_tiny.h"
#include "golden.h"
#include "session.h"
#include "support.h"
#include "vit_base.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 8.4e-6 (8.7e-6 without AVX-512).
constexpr double modelTolerance = 1e-5;

Input<float> image() { return counterValues("image", 3 * 224 * 224); }

TEST(VitBase, HasTheParametersOfThePaper) { EXPECT_EQ(VIT_BASE_PARAMETERS, 86567656); }

TEST(VitBase, AgreesWithPyTorch) {
  const Golden golden("vit_base.safetensors");
  Session<vit_base_t> session(KILN_TEST_LIBRARY(vit_base, VIT_BASE_WEIGHTS));
  Output<float> logits(1000);
  session.run(vit_base_forward, image(), logits);
  EXPECT_LE(golden.error("image.logits", logits.values()), modelTolerance);
}

TEST(DeitTiny, AgreesWithPyTorch) {
  const Golden golden("deit_tiny.safetensors");
  Session<deit_tiny_t> session(KILN_TEST_LIBRARY(deit_tiny, DEIT_TINY_WEIGHTS));
  Output<float> logits(1000);
  session.run(deit_tiny_forward, image(), logits);
  EXPECT_LE(golden.error("image.logits", logits.values()), modelTolerance);
}

} // namespace
} // namespace kiln::testing
