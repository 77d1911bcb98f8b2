// SPDX-License-Identifier: Apache-2.0
// Windows, shifted windows and their merging, with the counter's weights against PyTorch in f64.
#include "golden.h"
#include "session.h"
#include "support.h"
#include "swin_two_stages.h"

namespace kiln::testing {
namespace {

TEST(Swin, AgreesWithPyTorch) {
  const Golden golden("swin.safetensors");
  Session<swin_two_stages_t> session(KILN_TEST_LIBRARY(swin_two_stages, SWIN_TWO_STAGES_WEIGHTS));
  for (std::int64_t batch : {1, 3}) {
    SCOPED_TRACE(batch);
    std::vector<float> pixels(static_cast<std::size_t>(batch) * 3 * 56 * 56);
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = counter_uniform("images", i);
    Output<float> logits(static_cast<std::size_t>(batch) * 10), features(static_cast<std::size_t>(batch) * 49 * 48);
    session.run(swin_two_stages_forward, batch, Input(pixels), logits, features);
    const std::string prefix = "B" + std::to_string(batch);
    EXPECT_LE(golden.error(prefix + ".features", features.values()), modelTolerance);
    EXPECT_LE(golden.error(prefix + ".logits", logits.values()), modelTolerance);
  }
}

} // namespace
} // namespace kiln::testing
