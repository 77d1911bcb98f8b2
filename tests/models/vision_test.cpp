// SPDX-License-Identifier: Apache-2.0
// Vision models with the counter's weights compared with PyTorch in f64: Swin's windows, shifted windows and patch
// merging; DETR's queries; MViT's pooled attention.
#include "detr.h"
#include "golden.h"
#include "mvit.h"
#include "session.h"
#include "support.h"
#include "swin_two_stages.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 1.14e-6.
constexpr double modelTolerance = 3.4e-6;

Input<float> images(std::int64_t batch, std::int64_t elements) {
  return counterValues("images", static_cast<std::size_t>(batch * elements));
}

TEST(Swin, AgreesWithPyTorch) {
  const Golden golden("swin.safetensors");
  Session<swin_two_stages_t> session(KILN_TEST_LIBRARY(swin_two_stages, SWIN_TWO_STAGES_WEIGHTS));
  for (std::int64_t batch : {1, 3}) {
    SCOPED_TRACE(batch);
    Output<float> logits(batch * 10), features(batch * 49 * 48);
    session.run(swin_two_stages_forward, batch, images(batch, 3 * 56 * 56), logits, features);
    const std::string prefix = "B" + std::to_string(batch);
    EXPECT_LE(golden.error(prefix + ".features", features.values()), modelTolerance);
    EXPECT_LE(golden.error(prefix + ".logits", logits.values()), modelTolerance);
  }
}

TEST(Detr, AgreesWithPyTorch) {
  const Golden golden("detr.safetensors");
  Session<detr_t> session(KILN_TEST_LIBRARY(detr, DETR_WEIGHTS));
  for (std::int64_t batch : {1, 3}) {
    SCOPED_TRACE(batch);
    Output<float> logits(batch * 10 * 6), boxes(batch * 10 * 4), seen(batch * 10 * 96);
    session.run(detr_forward, batch, images(batch, 64 * 96 * 3), logits, boxes, seen);
    const std::string prefix = "B" + std::to_string(batch);
    EXPECT_LE(golden.error(prefix + ".logits", logits.values()), modelTolerance);
    EXPECT_LE(golden.error(prefix + ".boxes", boxes.values()), modelTolerance);
    EXPECT_LE(golden.error(prefix + ".seen", seen.values()), modelTolerance);
  }
}

TEST(Mvit, AgreesWithPyTorch) {
  const Golden golden("mvit.safetensors");
  Session<mvit_t> session(KILN_TEST_LIBRARY(mvit, MVIT_WEIGHTS));
  for (std::int64_t batch : {1, 3}) {
    SCOPED_TRACE(batch);
    Output<float> logits(batch * 10), features(batch * 49 * 64);
    session.run(mvit_forward, batch, images(batch, 56 * 56 * 3), logits, features);
    const std::string prefix = "B" + std::to_string(batch);
    EXPECT_LE(golden.error(prefix + ".logits", logits.values()), modelTolerance);
    EXPECT_LE(golden.error(prefix + ".features", features.values()), modelTolerance);
  }
}

} // namespace
} // namespace kiln::testing
