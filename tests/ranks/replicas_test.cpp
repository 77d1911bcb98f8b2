// SPDX-License-Identifier: Apache-2.0
// Data-parallel training compared with one process that takes all inputs as micro-batches: losses, norms, weights, and
// dropout masks.
#include <map>

#include "../seed.h"
#include "trained.h"
#include "trained1_ranks2_replicas2.h"
#include "trained1_replicas4.h"
#include "trained1_strict_replicas4.h"
#include "trained2.h"
#include "trained2_replicas2.h"
#include "trained2_strict1.h"
#include "trained2_strict2.h"
#include "trained2_strict_grid.h"
#include "trained4.h"
#include "trained4_strict.h"

namespace kiln::test {
namespace {

KILN_TRAINED(trained2, TRAINED2);
KILN_TRAINED(trained4, TRAINED4);
KILN_TRAINED(trained2_strict1, TRAINED2_STRICT1);
KILN_TRAINED(trained2_strict2, TRAINED2_STRICT2);
KILN_TRAINED(trained1_strict_replicas4, TRAINED1_STRICT_REPLICAS4);
KILN_TRAINED(trained2_strict_grid, TRAINED2_STRICT_GRID);
KILN_TRAINED(trained4_strict, TRAINED4_STRICT);
KILN_TRAINED(trained1_replicas4, TRAINED1_REPLICAS4);
KILN_TRAINED(trained2_replicas2, TRAINED2_REPLICAS2);
KILN_TRAINED(trained1_ranks2_replicas2, TRAINED1_RANKS2_REPLICAS2);

/// `sums`: the number of all-reduces per step.
template <class Api>
void runReplicas(uint32_t count, const Inputs &inputs, const std::vector<float> &wanted, uint64_t sums) {
  ThreadRanks replicas(count);
  std::vector<std::vector<float>> got(count);
  replicas.run([&](uint32_t number) {
    const kiln_communicator_t communicator = replicas.communicator(number);
    got[number] = train<Api>(inputs, {number, count, nullptr, &communicator});
  });
  expectNear(got[0], wanted);
  for (uint32_t number = 1; number < count; ++number)
    EXPECT_EQ(std::memcmp(got[0].data(), got[number].data(), got[0].size() * sizeof(float)), 0) << number;
  // Each step sends all gradients once, and the loss.
  const uint64_t bytes = steps * (Api::weightBytes + sizeof(float));
  EXPECT_NEAR(static_cast<double>(replicas.sentBytes), 2.0 * (count - 1) / count * static_cast<double>(bytes),
              0.02 * static_cast<double>(bytes));
  EXPECT_EQ(replicas.collectives, steps * sums);
  EXPECT_EQ(replicas.mostBegun, sums) << "sums are to go on while others are begun";
  EXPECT_GT(replicas.polls, 5 * steps);
}

TEST(Replicas, AreOneProcessWithAllInputs) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Inputs inputs(seed, 4);
  const std::vector<float> wanted = train<trained4>(inputs);
  // Two large weights and one bucket of small weights for each of three layers; one bucket of small weights outside of
  // the layers.
  runReplicas<trained1_replicas4>(4, inputs, wanted, 3 * (2 + 1) + 1);
  // After the micro-batches: the two large weights of all layers, and one bucket of the rest.
  runReplicas<trained2_replicas2>(2, inputs, wanted, 2 + 1);
}

// Two replicas of two tensor-parallel ranks each.
TEST(Replicas, MayBeSplitAmongRanks) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Inputs inputs(seed, 2);
  const std::vector<float> wanted = train<trained2>(inputs);
  std::vector<float> got[4];
  runGrid({2, 2, 1}, [&](uint32_t process, const Place &place) {
    got[process] = train<trained1_ranks2_replicas2>(inputs, place);
  });
  expectNear(got[0], wanted);
  for (const std::vector<float> &other : got)
    EXPECT_EQ(std::memcmp(got[0].data(), other.data(), got[0].size() * sizeof(float)), 0);
}

/// The events of a trace, in order.
struct Events {
  std::vector<std::pair<kiln_event_t, bool>> all; // the flag marks the end of an event
  kiln_trace_t trace = {this, [](void *self, const kiln_event_t *event) { note(self, event, false); },
                        [](void *self, const kiln_event_t *event) { note(self, event, true); }};

private:
  static void note(void *self, const kiln_event_t *event, bool isEnd) {
    static_cast<Events *>(self)->all.emplace_back(*event, isEnd);
  }
};

// While the all-reduces of a layer's gradients are in progress, the gradients of the next layers are computed; the step
// waits for the all-reduces at its end.
TEST(Replicas, AreSeenToOverlapKernels) {
  const Inputs inputs(7, 4);
  ThreadRanks replicas(4);
  Events events;
  replicas.run([&](uint32_t number) {
    const kiln_communicator_t communicator = replicas.communicator(number);
    train<trained1_replicas4>(inputs, {number, 4, nullptr, &communicator, number == 0 ? &events.trace : nullptr});
  });
  std::map<uint32_t, std::pair<kiln_event_t, int>> begun; // by track; with the number of kernels since
  std::map<std::string, int> overlapped; // a layer's all-reduce -> the fewest kernels that overlapped it
  int sums = 0, waits = 0;
  for (const auto &[event, isEnd] : events.all) {
    if (event.worker < KILN_TRACE_TOGETHER) {
      waits += isEnd && std::strcmp(event.kernel, "finish") == 0;
      for (auto &[track, sum] : begun)
        sum.second += isEnd && std::strcmp(event.kernel, "finish") != 0;
      continue;
    }
    EXPECT_STREQ(event.kernel, "all-reduce");
    if (!isEnd) {
      EXPECT_TRUE(begun.try_emplace(event.worker, event, 0).second) << "one at a time on a track";
      continue;
    }
    ++sums;
    const auto found = begun.find(event.worker);
    ASSERT_NE(found, begun.end());
    EXPECT_EQ(found->second.first.bytes, event.bytes);
    const std::string layer = std::string(event.layer) + "/" + std::to_string(event.number);
    const auto [fewest, isNew] = overlapped.try_emplace(layer, found->second.second);
    fewest->second = std::min(fewest->second, found->second.second);
    begun.erase(found);
  }
  EXPECT_TRUE(begun.empty());
  EXPECT_EQ(sums, static_cast<int>(steps * 10));
  EXPECT_EQ(waits, static_cast<int>(steps));
  // The last layer's all-reduces begin first and overlap the backward passes of two more layers.
  EXPECT_GT(overlapped.at("blocks.{}.down/2"), overlapped.at("blocks.{}.down/1"));
  EXPECT_GT(overlapped.at("blocks.{}.down/1"), overlapped.at("blocks.{}.down/0"));
  EXPECT_GT(overlapped.at("blocks.{}.down/2"), 10);
}

TEST(Replicas, AreAskedForWhereTheyTrain) {
  trained1_replicas4_t *made = nullptr;
  kiln_error_t error{};
  ASSERT_EQ(trained1_replicas4_create(nullptr, &made, &error), KILN_OK) << error.message;
  const std::unique_ptr<trained1_replicas4_t, void (*)(trained1_replicas4_t *)> model(made, trained1_replicas4_destroy);
  const testing::WeightImage image(std::vector<testing::WeightShape>{TRAINED2_WEIGHTS(KILN_TEST_WEIGHT)});
  ASSERT_EQ(trained1_replicas4_bind_weights_from_memory(made, image.data(), image.size(), &error), KILN_OK);
  const Memory arena((trained1_replicas4::arenaBytes + 63) / 64 * 64);
  kiln_call_t call{arena.data, arena.bytes, nullptr, &error};
  const std::vector<int32_t> words(rows, 1);
  const float rate = 1;
  const int32_t step = 1, dropout = 0;
  float loss = NAN, before[16], after[16];
  ASSERT_EQ(trained1_replicas4_read_weight(made, "words.weight", 7, 1, before, &error), KILN_OK);
  EXPECT_EQ(trained1_replicas4_evaluate(made, &call, words.data(), words.data(), &loss), KILN_OK) << error.message;
  ASSERT_EQ(trained1_replicas4_begin_training(made, arena.data, &error), KILN_OK) << error.message;
  EXPECT_EQ(trained1_replicas4_descend(made, &call, words.data(), words.data(), &rate, &step, &dropout, &loss),
            KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "descend: null given; expected a communicator of replicas with begin and finish");
  ThreadRanks three(3);
  const kiln_communicator_t wrong = three.communicator(1);
  call.replicas = &wrong;
  EXPECT_EQ(trained1_replicas4_descend(made, &call, words.data(), words.data(), &rate, &step, &dropout, &loss),
            KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "descend: wrong communicator; expected one of 4 replicas, got replica 1 of 3");
  ASSERT_EQ(trained1_replicas4_read_weight(made, "words.weight", 7, 1, after, &error), KILN_OK);
  EXPECT_EQ(std::memcmp(before, after, sizeof before), 0);
}

// Two ranks, with sums that also have two parts in one process: micro-batches, dropout, layers that are recomputed.
TEST(RanksTraining, IsTheSameBitsOfSumsInPartsOfMicroBatches) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Inputs inputs(seed, 2);
  const std::vector<float> one = train<trained2_strict1>(inputs);
  ThreadRanks ranks(2);
  ranks.run([&](uint32_t rank) {
    const kiln_communicator_t communicator = ranks.communicator(rank);
    EXPECT_EQ(train<trained2_strict2>(inputs, {0, 1, &communicator}), one);
  });
  expectNear(one, train<trained2>(inputs));
}

/// Trains a grid of processes, which must all have the same results, and returns these.
template <class Api> std::vector<float> trainGrid(const Grid &grid, const Inputs &inputs) {
  std::vector<std::vector<float>> got(grid.ranks * grid.replicas);
  runGrid(grid, [&](uint32_t process, const Place &place) { got[process] = train<Api>(inputs, place); });
  for (const std::vector<float> &other : got)
    EXPECT_EQ(other, got[0]);
  return got[0];
}

// Sums in four fixed parts give the same bits whether the parts are micro-batches of one process, replicas, or both,
// also with tensor parallelism.
TEST(Replicas, AreTheSameBitsOfSumsInParts) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Inputs inputs(seed, 4);
  const std::vector<float> one = train<trained4_strict>(inputs);
  EXPECT_EQ(trainGrid<trained1_strict_replicas4>({1, 4, 1}, inputs), one);
  EXPECT_EQ(trainGrid<trained2_strict_grid>({2, 2, 1}, inputs), one);
  expectNear(one, train<trained4>(inputs));
}

} // namespace
} // namespace kiln::test
