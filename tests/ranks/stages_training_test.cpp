// SPDX-License-Identifier: Apache-2.0
// Pipeline-parallel training compared with one process that takes the same micro-batches: losses, norms, weights,
// dropout masks, the order of forward and backward passes, and the state after a stage is lost.
#include <string>

#include "../seed.h"
#include "common.h"
#include "common_stages4.h"
#include "trained.h"
#include "trained1.h"
#include "trained1_stages3.h"
#include "trained2_grid.h"
#include "trained4.h"
#include "trained4_stages3.h"

namespace kiln::test {
namespace {

KILN_TRAINED(trained1, TRAINED1);
KILN_TRAINED(trained4, TRAINED4);
KILN_TRAINED(trained1_stages3, TRAINED1_STAGES3);
KILN_TRAINED(trained4_stages3, TRAINED4_STAGES3);
KILN_TRAINED(trained2_grid, TRAINED2_GRID);

constexpr uint32_t stageCount = 3;

/// Merges the results of all stages: losses and norms, which all stages have alike except for the evaluation's loss,
/// and the weights of each stage.
std::vector<float> merge(const std::vector<std::vector<float>> &stages) {
  std::vector<float> all = stages.back();
  for (const std::vector<float> &stage : stages) {
    EXPECT_EQ(std::memcmp(stage.data(), all.data(), 2 * steps * sizeof(float)), 0);
    for (size_t i = 2 * steps; i < all.size(); ++i)
      if (std::isnan(all[i]))
        all[i] = stage[i];
      else if (!std::isnan(stage[i]))
        EXPECT_EQ(stage[i], all[i]) << i;
  }
  return all;
}

template <class Api> std::vector<float> trainStages(const Inputs &inputs, bool waitsForReceipt) {
  ThreadRanks stages(stageCount);
  stages.waitsForReceipt = waitsForReceipt;
  std::vector<std::vector<float>> got(stageCount);
  stages.run([&](uint32_t number) {
    const kiln_communicator_t communicator = stages.communicator(number);
    got[number] = train<Api>(inputs, {.stages = &communicator});
  });
  return merge(got);
}

// The embedding table is tied to the logits: the first and the last stage both update it, and it counts once in the
// norm.
TEST(TrainedStages, AreOneProcess) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Inputs inputs(seed, 4);
  const std::vector<float> wanted = train<trained4>(inputs);
  expectNear(trainStages<trained4_stages3>(inputs, false), wanted);
  expectNear(trainStages<trained4_stages3>(inputs, true), wanted);
}

// Fewer micro-batches than stages, or none.
TEST(TrainedStages, OfOneBatchAreOneProcess) {
  const Inputs inputs(3, 1);
  expectNear(trainStages<trained1_stages3>(inputs, true), train<trained1>(inputs));
}

// Three stages, two replicas with sharded optimiser state, two ranks: the process number is (stage * 2 + replica) * 2 +
// rank.
TEST(TrainedStages, OfAGridAreOneProcess) {
  const Inputs inputs(5, 4);
  std::vector<std::vector<float>> got(12);
  runGrid({2, 2, stageCount},
          [&](uint32_t process, const Place &place) { got[process] = train<trained2_grid>(inputs, place); });
  const std::vector<float> wanted = train<trained4>(inputs);
  for (uint32_t other = 0; other < 4; ++other)
    expectNear(merge({got[other], got[4 + other], got[8 + other]}), wanted);
}

/// Returns losses and norms of five steps, then some elements of the weight that all layers read.
#define TRAIN_COMMON(name, NAME)                                                                                       \
  std::vector<float> train_##name(const kiln_communicator_t *stages) {                                                 \
    kiln_error_t error{};                                                                                              \
    kiln_options_t options{};                                                                                          \
    options.stage = stages ? stages->rank : 0;                                                                         \
    options.stages = stages ? stages->size : 0;                                                                        \
    name##_t *model = nullptr;                                                                                         \
    EXPECT_EQ(name##_create_on(&options, &model, &error), KILN_OK) << error.message;                                   \
    const testing::WeightImage image(std::vector<testing::WeightShape>{COMMON_WEIGHTS(KILN_TEST_WEIGHT)});             \
    EXPECT_EQ(name##_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_OK) << error.message;   \
    const Memory arena((NAME##_TRAIN_ARENA_BYTES(1) + 63) / 64 * 64);                                                  \
    std::memset(arena.data, 0, NAME##_TRAINING_BYTES);                                                                 \
    kiln_call_t call{arena.data, arena.bytes, nullptr, &error};                                                        \
    call.stages = stages;                                                                                              \
    std::mt19937 random(4);                                                                                            \
    std::vector<float> x(2 * 3 * 8), results;                                                                          \
    for (float &value : x)                                                                                             \
      value = std::uniform_real_distribution<float>(-1, 1)(random);                                                    \
    const int32_t targets[] = {0, 3, 1, 2, 2, 0};                                                                      \
    for (int32_t step = 1; step <= 5; ++step) {                                                                        \
      const float rate = 0.1F;                                                                                         \
      float loss = NAN, norm = NAN;                                                                                    \
      EXPECT_EQ(name##_train(model, &call, x.data(), targets, &rate, &step, &loss, &norm), KILN_OK) << error.message;  \
      results.insert(results.end(), {loss, norm});                                                                     \
    }                                                                                                                  \
    results.resize(10 + 64);                                                                                           \
    EXPECT_EQ(name##_read_weight(model, "common.weight", 0, 8, &results[10], &error), KILN_OK) << error.message;       \
    name##_destroy(model);                                                                                             \
    return results;                                                                                                    \
  }
TRAIN_COMMON(common, COMMON)
TRAIN_COMMON(common_stages4, COMMON_STAGES4)

// Each stage, of one or two layers, has a part of the gradient of the weight that all layers read; the norm counts it
// once.
TEST(TrainedStages, AddUpWhatAllLayersRead) {
  constexpr uint32_t four = 4;
  const std::vector<float> wanted = train_common(nullptr);
  std::vector<std::vector<float>> got(four);
  ThreadRanks stages(four);
  stages.run([&](uint32_t number) {
    const kiln_communicator_t communicator = stages.communicator(number);
    got[number] = train_common_stages4(&communicator);
  });
  expectNear(got[0], wanted);
  for (uint32_t number = 1; number < four; ++number)
    EXPECT_EQ(got[number], got[0]);
}

/// Returns the order of a stage's sends and receives in a step: f for a forward send, b for a backward send, F for a
/// forward receive, B for a backward receive.
std::string orderOf(const std::vector<kiln_collective_t> &begun, uint32_t stage) {
  std::string order;
  for (const kiln_collective_t &what : begun)
    if (what.kind == KILN_SEND && what.elements == rows * 16)
      order += what.peer > stage ? 'f' : 'b';
    else if (what.kind == KILN_RECEIVE && what.elements == rows * 16)
      order += what.peer > stage ? 'B' : 'F';
  return order;
}

// The 1F1B schedule: each stage runs just as many micro-batches ahead as keep the following stages busy.
TEST(TrainedStages, TakeTurns) {
  const Inputs inputs(9, 4);
  ThreadRanks stages(stageCount);
  std::string orders[stageCount];
  stages.run([&](uint32_t number) {
    WatchedRank watched{stages, stages.communicator(number)};
    const kiln_communicator_t communicator = watched.communicator();
    TrainedProcess<trained4_stages3> process(inputs, {.stages = &communicator});
    process.train(1);
    orders[number] = orderOf(watched.begun, number);
  });
  EXPECT_EQ(orders[0], "fffBfBBB");
  EXPECT_EQ(orders[1], "FfFfBbFfBbFfBbBb");
  EXPECT_EQ(orders[2], "FbFbFbFb");
}

/// Returns some weights of a stage, those that it has.
template <class Api> std::vector<float> readSome(TrainedProcess<Api> &process) {
  std::vector<float> all;
  for (const char *name : {"words.weight", "blocks.0.up.bias", "blocks.1.up.bias", "blocks.2.up.bias", "norm.bias"}) {
    float values[16];
    if (Api::read(process.model.get(), name, 0, std::strcmp(name, "words.weight") == 0 ? 1 : 16, values,
                  &process.error) == KILN_OK)
      all.insert(all.end(), std::begin(values), std::end(values));
  }
  return all;
}

// Wherever a stage is lost, the others have the weights of the step before.
TEST(TrainedStages, ALostOneLeavesTheWeightsOfTheLastStep) {
  const Inputs inputs(3, 4);
  for (const uint32_t lost : {0U, 1U, 2U})
    for (const int at : {0, 3, 7, 9}) {
      ThreadRanks stages(stageCount);
      stages.run([&](uint32_t number) {
        WatchedRank watched{stages, stages.communicator(number)};
        const kiln_communicator_t communicator = watched.communicator();
        TrainedProcess<trained4_stages3> process(inputs, {.stages = &communicator});
        process.train(2);
        const std::vector<float> before = readSome(process);
        EXPECT_FALSE(before.empty());
        watched.left = number == lost ? at : 1 << 30;
        EXPECT_EQ(process.step(), KILN_RANK_LOST) << lost << " at " << at;
        EXPECT_EQ(readSome(process), before) << lost << " at " << at;
      });
    }
}

// A training step returns the loss on all stages; an evaluation, which does not train, on the last stage only.
TEST(TrainedStages, WantAPlaceForTheLoss) {
  const Inputs inputs(3, 4);
  ThreadRanks stages(stageCount);
  const kiln_communicator_t communicator = stages.communicator(0);
  TrainedProcess<trained4_stages3> process(inputs, {.stages = &communicator});
  const float rate = 1;
  const int32_t step = 1, seed = 0;
  EXPECT_EQ(trained4_stages3_descend(process.model.get(), &process.call, inputs.words.data(), inputs.words.data(),
                                     &rate, &step, &seed, nullptr),
            KILN_NULL_ARGUMENT);
  EXPECT_STREQ(process.error.message, "descend: null given; expected output \"loss\"");
  EXPECT_EQ(
      trained4_stages3_evaluate(process.model.get(), &process.call, inputs.words.data(), inputs.words.data(), nullptr),
      KILN_OK)
      << process.error.message;
}

} // namespace
} // namespace kiln::test
