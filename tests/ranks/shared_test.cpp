// SPDX-License-Identifier: Apache-2.0
// Optimiser-state sharding (ZeRO-1) compared with replicas that have the whole state and with one process: bytes sent
// and kept, checkpoints, the state after a replica is lost, and refused calls.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "../seed.h"
#include "folder_test.h"
#include "trained.h"
#include "trained1_ranks2_shared2.h"
#include "trained1_shared4.h"
#include "trained2.h"
#include "trained2_replicas2.h"
#include "trained2_shared2.h"
#include "trained4.h"

namespace kiln::test {
namespace {

KILN_TRAINED(trained2, TRAINED2);
KILN_TRAINED(trained4, TRAINED4);
KILN_TRAINED(trained2_replicas2, TRAINED2_REPLICAS2);
KILN_TRAINED_TOGETHER(trained1_shared4, TRAINED1_SHARED4);
KILN_TRAINED_TOGETHER(trained2_shared2, TRAINED2_SHARED2);
KILN_TRAINED_TOGETHER(trained1_ranks2_shared2, TRAINED1_RANKS2_SHARED2);

constexpr uint64_t width = 16, hidden = 2048, layers = 3, large = 2 * layers * width * hidden;
/// The second line counts norm, up, down and shift of a layer; the table and the last norm.
constexpr uint64_t parameters =
    large + layers * (2 * width + hidden + width + width * width + width) + classes * width + 2 * width;

/// Returns the results of all replicas.
template <class Api>
std::vector<std::vector<float>> trainTogether(ThreadRanks &replicas, const Inputs &inputs, uint32_t count) {
  std::vector<std::vector<float>> got(count);
  replicas.run([&](uint32_t number) {
    const kiln_communicator_t communicator = replicas.communicator(number);
    got[number] = train<Api>(inputs, {number, count, nullptr, &communicator});
  });
  for (const std::vector<float> &other : got)
    EXPECT_EQ(std::memcmp(got[0].data(), other.data(), got[0].size() * sizeof(float)), 0);
  return got;
}

/// `sums`: the number of gradient collectives in an AdamW step, and in a gradient-descent step, which has no optimiser
/// state. The reduce-scatter of the gradients and the all-gather of the weights together send what a ring sends for an
/// all-reduce of the gradients. The seven AdamW steps also reduce a norm.
template <class Api>
std::vector<float> runShared(uint32_t n, const Inputs &inputs, const std::vector<float> &wanted,
                             std::pair<uint64_t, uint64_t> sums) {
  ThreadRanks replicas(n);
  const std::vector<float> got = trainTogether<Api>(replicas, inputs, n)[0];
  expectNear(got, wanted);
  EXPECT_EQ(replicas.sentBytes, (steps * (parameters + 1) + 7) * sizeof(float) * 2 * (n - 1) / n);
  EXPECT_EQ(replicas.collectives, 7 * (sums.first + 1 + 2 * layers) + 3 * sums.second);
  EXPECT_EQ(replicas.mostBegun, std::max(sums.first, sums.second)) << "sums are to go on while others are begun";
  return got;
}

TEST(SharedStates, AreThoseOfOneProcessWithAllInputs) {
  const uint32_t seed = testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Inputs inputs(seed, 4);
  const std::vector<float> wanted = train<trained4>(inputs);
  // Two large weights and one bucket of small weights for each of three layers; one bucket of small weights outside of
  // the layers.
  runShared<trained1_shared4>(4, inputs, wanted, {3 * (2 + 1) + 1, 3 * (2 + 1) + 1});
  // After the micro-batches: parts of the large weights belong to one layer each.
  const std::vector<float> got = runShared<trained2_shared2>(2, inputs, wanted, {3 * 2 + 1, 2 + 1});
  // Sums over replicas are as without sharding; the norm is a sum over parts.
  ThreadRanks replicas(2);
  expectNear(got, trainTogether<trained2_replicas2>(replicas, inputs, 2)[0], 1e-5);
}

TEST(SharedStates, TakeTheirPartOfTheMemory) {
  constexpr size_t moments = 2 * large * sizeof(float);
  EXPECT_EQ(trained2_shared2::trainingBytes, trained2_replicas2::trainingBytes - moments / 2);
  EXPECT_EQ(trained1_shared4::trainingBytes, trained2_replicas2::trainingBytes - moments * 3 / 4);
  EXPECT_LE(trained2_shared2::arenaBytes, trained2_replicas2::arenaBytes - 2 * (moments / 2));
}

class SharedFiles : public FolderTest {
protected:
  /// With `count` replicas: loads `from`, or trains some steps if that is null; then saves to `to`.
  template <class Api> void save(uint32_t count, const Inputs &inputs, const char *from, const char *to) {
    ThreadRanks replicas(count);
    replicas.run([&](uint32_t number) {
      const kiln_communicator_t communicator = replicas.communicator(number);
      TrainedProcess<Api> process(inputs, {number, count, nullptr, &communicator});
      if (from)
        process.check(
            Api::load(process.model.get(), process.call.arena, &process.training, at(from).c_str(), &process.error));
      else
        process.train(half);
      const std::string path = at(to);
      process.check(Api::save(process.model.get(), &process.call, &process.training, number ? nullptr : path.c_str()));
    });
  }
  template <class Api> std::vector<float> goOn(const Inputs &inputs, const Place &place, const char *from) {
    TrainedProcess<Api> process(inputs, place);
    process.check(
        Api::load(process.model.get(), process.call.arena, &process.training, at(from).c_str(), &process.error));
    EXPECT_EQ(process.training.step, half);
    process.train(static_cast<int32_t>(steps));
    process.look();
    return process.results;
  }
  template <class Api> std::vector<float> goOnTogether(uint32_t count, const Inputs &inputs, const char *from) {
    ThreadRanks replicas(count);
    std::vector<std::vector<float>> got(count);
    replicas.run([&](uint32_t number) {
      const kiln_communicator_t communicator = replicas.communicator(number);
      got[number] = goOn<Api>(inputs, {number, count, nullptr, &communicator}, from);
    });
    return got[0];
  }
  /// Loads and saves in one process, which must write the same file.
  void expectThatOfOne(const Inputs &inputs, const char *name) {
    TrainedProcess<trained4> one(inputs);
    one.check(trained4::load(one.model.get(), one.call.arena, &one.training, at(name).c_str(), &one.error));
    one.check(trained4::saveAlone(one.model.get(), one.call.arena, &one.training, at("again").c_str(), &one.error));
    EXPECT_TRUE(bytes("again") == bytes(name));
  }

  static constexpr int32_t half = 5;
};

TEST_F(SharedFiles, AreGoneOnFromByAnyNumberOfReplicas) {
  const Inputs inputs(31, 4);
  std::vector<float> wanted = train<trained4>(inputs);
  wanted.erase(wanted.begin(), wanted.begin() + 2 * half);
  save<trained1_shared4>(4, inputs, nullptr, "four");
  expectNear(goOn<trained4>(inputs, {}, "four"), wanted);
  expectNear(goOnTogether<trained2_shared2>(2, inputs, "four"), wanted);
  expectNear(goOnTogether<trained2_replicas2>(2, inputs, "four"), wanted);
  // The same number of replicas resumes to the same bits.
  ThreadRanks replicas(4);
  std::vector<float> same = trainTogether<trained1_shared4>(replicas, inputs, 4)[0];
  same.erase(same.begin(), same.begin() + 2 * half);
  EXPECT_EQ(goOnTogether<trained1_shared4>(4, inputs, "four"), same);
  expectThatOfOne(inputs, "four");
  save<trained2_shared2>(2, inputs, "four", "two");
  EXPECT_TRUE(bytes("two") == bytes("four"));
}

// Two replicas of two tensor-parallel ranks each: the state of a rank's slice is sharded among its replicas.
TEST_F(SharedFiles, AndOfAGridOfRanks) {
  const Inputs inputs(17, 2);
  const std::vector<float> wanted = train<trained2>(inputs);
  std::vector<float> got[4];
  runGrid({2, 2, 1}, [&](uint32_t process, const Place &place) {
    TrainedProcess<trained1_ranks2_shared2> own(inputs, place);
    own.train(half);
    const std::string path = at("grid");
    own.check(
        trained1_ranks2_shared2::save(own.model.get(), &own.call, &own.training, process ? nullptr : path.c_str()));
    own.train(static_cast<int32_t>(steps));
    own.look();
    got[process] = own.results;
    // Loads what was saved and saves it again.
    own.check(trained1_ranks2_shared2::load(own.model.get(), own.call.arena, &own.training, path.c_str(), &own.error));
    const std::string again = at("again");
    own.check(
        trained1_ranks2_shared2::save(own.model.get(), &own.call, &own.training, process ? nullptr : again.c_str()));
  });
  expectNear(got[0], wanted);
  for (const std::vector<float> &other : got)
    EXPECT_EQ(std::memcmp(got[0].data(), other.data(), got[0].size() * sizeof(float)), 0);
  EXPECT_TRUE(bytes("grid") == bytes("again"));
  expectThatOfOne(inputs, "grid");
  std::vector<float> rest(wanted.begin() + 2 * half, wanted.end());
  expectNear(goOn<trained2>(inputs, {}, "grid"), rest);
}

// Seven gradient collectives, one for the norm, six for weights: wherever the other replica is lost, the weights are
// those of a completed step.
TEST_F(SharedFiles, ALostReplicaLeavesTheWeightsOfTheLastStep) {
  const Inputs inputs(3, 4);
  for (const int at : {0, 7, 8, 10, 13}) {
    ThreadRanks replicas(2);
    replicas.run([&](uint32_t number) {
      WatchedRank losing{replicas, replicas.communicator(number)};
      const kiln_communicator_t communicator = losing.communicator();
      TrainedProcess<trained2_shared2> process(inputs, {number, 2, nullptr, &communicator});
      process.train(2);
      const std::string before = this->at(number ? "before1" : "before0"),
                        after = this->at(number ? "after1" : "after0");
      process.check(trained2_shared2::saveWeights(process.model.get(), before.c_str(), &process.error));
      losing.left = number == 1 ? at : 1 << 30;
      EXPECT_EQ(process.step(), KILN_RANK_LOST);
      process.check(trained2_shared2::saveWeights(process.model.get(), after.c_str(), &process.error));
    });
    EXPECT_TRUE(bytes("before0") == bytes("after0")) << at;
    EXPECT_TRUE(bytes("before1") == bytes("after1")) << at;
  }
}

TEST_F(SharedFiles, AreRefusedWithoutTheReplica) {
  using Api = trained2_shared2;
  kiln_error_t error{};
  Api::Model *made = nullptr;
  kiln_options_t options{};
  for (const auto &[replica, count] : {std::pair(0u, 0u), std::pair(2u, 2u), std::pair(0u, 4u)}) {
    options.replica = replica;
    options.replicas = count;
    EXPECT_EQ(Api::create(&options, &made, &error), KILN_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(error.message),
              "model \"trained2_shared2\": wrong replica; expected one below 2 and 2 replicas, got " +
                  std::to_string(replica) + " and " + std::to_string(count));
  }
  ThreadRanks replicas(2);
  const kiln_communicator_t first = replicas.communicator(0), second = replicas.communicator(1);
  const Inputs inputs(1, 4);
  TrainedProcess<Api> process(inputs, {1, 2, nullptr, &second});
  process.call.replicas = &first;
  EXPECT_EQ(process.step(), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(process.error.message,
               "train: wrong communicator; expected replica 1 of 2, as its model, got replica 0");
  const std::string path = at("file");
  Api::Model *model = process.model.get();
  EXPECT_EQ(Api::save(model, &process.call, &process.training, path.c_str()), KILN_INVALID_ARGUMENT);
  process.call.replicas = nullptr;
  EXPECT_EQ(Api::save(model, &process.call, &process.training, path.c_str()), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(process.error.message,
               "save_training_together: null given; expected a communicator of replicas with begin and finish");
  EXPECT_EQ(Api::saveAlone(model, process.call.arena, &process.training, path.c_str(), &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(
      error.message,
      "save_training: states sliced; expected whole ones, got a replica's part of \"mean:blocks.{}.up.weight\"");
  EXPECT_EQ(Api::swapAverage(model, process.call.arena, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(
      error.message,
      "swap_average: states sliced; expected whole ones, got a replica's part of \"mean:blocks.{}.up.weight\"");
  EXPECT_FALSE(std::filesystem::exists(path));
}

} // namespace
} // namespace kiln::test
