// SPDX-License-Identifier: Apache-2.0
// Stages that train together beside one process that goes through the same micro-batches: losses, norms, weights, which
// elements dropout drops, and in which order a stage goes forwards and backwards.
#include "trained.h"
#include "trained4.h"
#include "trained4_stages3.h"

namespace kiln::test {
namespace {

#define TRAINER(name, NAME)                                                                                            \
  struct name {                                                                                                        \
    KILN_TRAINED(name, NAME);                                                                                          \
  }
TRAINER(trained4, TRAINED4);
TRAINER(trained4_stages3, TRAINED4_STAGES3);

constexpr size_t perStep = 2; // loss and norm

/// Of all stages the losses and norms, which are alike but for that of the evaluation, and the weights of those that
/// have them.
std::vector<float> merge(const std::vector<std::vector<float>> &stages) {
  std::vector<float> all = stages.back();
  for (const std::vector<float> &stage : stages)
    for (size_t i = 0; i < all.size(); ++i)
      if (std::isnan(all[i]))
        all[i] = stage[i];
      else if (!std::isnan(stage[i]))
        EXPECT_EQ(stage[i], all[i]) << i;
  for (const std::vector<float> &stage : stages)
    EXPECT_EQ(std::memcmp(stage.data(), all.data(), perStep * steps * sizeof(float)), 0);
  return all;
}

TEST(TrainedStages, AreOneProcess) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Inputs inputs(seed, 4);
  const std::vector<float> wanted = train<trained4>(inputs);
  for (bool waits : {false, true}) {
    ThreadRanks stages(3);
    stages.waitsForReceipt = waits;
    std::vector<std::vector<float>> got(3);
    stages.run([&](uint32_t number) {
      const kiln_communicator_t communicator = stages.communicator(number);
      got[number] = train<trained4_stages3>(inputs, {0, 1, nullptr, nullptr, nullptr, &communicator});
    });
    expectNear(merge(got), wanted);
  }
}

} // namespace
} // namespace kiln::test
