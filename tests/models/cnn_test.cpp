// SPDX-License-Identifier: Apache-2.0
// A small convolutional network with the counter's weights compared with PyTorch in f64.
#include "golden.h"
#include "session.h"
#include "small_cnn.h"
#include "support.h"

namespace kiln::testing {
namespace {

/// The tolerance relative to the f64 oracle: at most three times the measured error, 3.5e-7.
constexpr double modelTolerance = 1e-6;

TEST(SmallCnn, AgreesWithPyTorch) {
  const Golden golden("small_cnn.safetensors");
  Session<small_cnn_t> session(KILN_TEST_LIBRARY(small_cnn, SMALL_CNN_WEIGHTS));
  for (std::int64_t batch : {1, 3}) {
    SCOPED_TRACE(batch);
    const std::vector<float> pixels = counterValues("image", static_cast<std::size_t>(batch) * 3 * 90 * 74);
    Output<float> features(static_cast<std::size_t>(batch) * 36 * 6 * 5),
        resized(static_cast<std::size_t>(batch) * 36 * 13 * 4), logits(static_cast<std::size_t>(batch) * 10);
    session.run(small_cnn_forward, batch, Input(pixels), features, resized, logits);
    const std::string prefix = "B" + std::to_string(batch);
    EXPECT_LE(golden.error(prefix + ".features", features.values()), modelTolerance);
    EXPECT_LE(golden.error(prefix + ".resized", resized.values()), modelTolerance);
    EXPECT_LE(golden.error(prefix + ".logits", logits.values()), modelTolerance);
  }
}

} // namespace
} // namespace kiln::testing
