// SPDX-License-Identifier: Apache-2.0
// Checkpoints of grids: replicas with sharded optimiser state and pipeline stages, with and without tensor parallelism,
// write one file together; each process loads its part of it; and all processes fail if one of them fails.
#include "ranked_grids.h"

namespace {

using namespace kiln_test;

struct GridCase {
  Grid Of;
  Kind Kinds;
};
// Stages have parts of the layers, possibly of unequal numbers, tensors that only one stage has, and tensors that
// several stages have; large tensors are transferred in pieces.
const GridCase GridCases[] = {{{1, 2, 1}, {true, false}},
                              {{1, 3, 1}, {}},
                              {{4, 2, 1}, {}},
                              {{1, 1, 2}, {true, false}},
                              {{2, 1, 3}, {true, false}},
                              {{2, 2, 2}, {false, true}},
                              {{1, 1, 4}, {}},
                              {{2, 1, 5}, {true, false}}};

TEST(Grids, TheFileIsThatOfOneProcess) {
  const Folder folder;
  for (const auto &[grid, kind] : GridCases) {
    SCOPED_TRACE(testing::PrintToString(grid));
    RankedModel one(0, 1, kind);
    ASSERT_NO_FATAL_FAILURE(one.fill(5));
    ASSERT_EQ(one.saveAlone(folder.at("one").c_str(), true), KILN_OK) << one.Bound->Error.message;
    asGrid(grid, kind, 5, [&](RankedModel &model, GridProcess &own) {
      const std::string path = folder.at("many");
      EXPECT_EQ(own.save(model, own.isFirst() ? path.c_str() : nullptr, true), KILN_OK) << model.Bound->Error.message;
      EXPECT_EQ(model.saveAlone(path.c_str(), true), KILN_INVALID_ARGUMENT);
    });
    EXPECT_TRUE(folder.read("many") == folder.read("one"));
    asGrid(grid, kind, 3, [&](RankedModel &model, GridProcess &own) {
      RankedModel wanted(own.Own.Ranks, grid.Ranks, kind, own.member());
      ASSERT_NO_FATAL_FAILURE(wanted.fill(5));
      EXPECT_EQ(model.load(folder.at("one").c_str()), KILN_OK) << model.Bound->Error.message;
      EXPECT_TRUE(model.contents() == wanted.contents()) << testing::PrintToString(own.Own);
    });
  }
}

// Stages have consecutive layers, and their numbers differ by at most one: the last stage never has a remaining layer,
// and the first one only if all stages in between have one.
TEST(Grids, StagesHaveAllLayers) {
  for (uint32_t stages = 2; stages <= 9; ++stages)
    for (uint32_t layers = stages; layers <= 40; ++layers) {
      SCOPED_TRACE(std::to_string(layers) + " layers, " + std::to_string(stages) + " stages");
      uint32_t next = 0, longer = 0;
      for (uint32_t stage = 0; stage < stages; ++stage) {
        const uint32_t own = kiln_stage_layers(layers, stages, stage);
        EXPECT_EQ(kiln_first_layer(layers, stages, stage), next);
        EXPECT_EQ(own == layers / stages || own == layers / stages + 1, true);
        longer += own > layers / stages;
        next += own;
      }
      EXPECT_EQ(next, layers);
      EXPECT_EQ(kiln_stage_layers(layers, stages, stages - 1), layers / stages);
      EXPECT_EQ(kiln_stage_layers(layers, stages, 0) > layers / stages, longer + 1 == stages);
    }
}

// All weights, including frozen ones, and the averaged weights that replace them.
TEST(Grids, WeightsOfStagesAreThoseOfOneProcess) {
  const Folder folder;
  for (const Grid &grid : {Grid{1, 1, 3}, Grid{4, 1, 2}, Grid{1, 1, 5}}) {
    SCOPED_TRACE(testing::PrintToString(grid));
    RankedModel one(0, 1, {true});
    ASSERT_NO_FATAL_FAILURE(one.fill(5));
    ASSERT_EQ(one.saveAlone(folder.at("before").c_str(), false), KILN_OK) << one.Bound->Error.message;
    ASSERT_EQ(kiln_swap_average(one.Bound->Model, one.arena(), nullptr), KILN_OK);
    ASSERT_EQ(one.saveAlone(folder.at("swapped").c_str(), false), KILN_OK) << one.Bound->Error.message;
    ASSERT_NE(folder.read("swapped"), folder.read("before"));
    for (const bool isSwapped : {false, true}) {
      asGrid(grid, {true}, 5, [&](RankedModel &model, GridProcess &own) {
        if (isSwapped)
          EXPECT_EQ(kiln_swap_average(model.Bound->Model, model.arena(), &model.Bound->Error), KILN_OK);
        EXPECT_EQ(own.save(model, folder.at("many").c_str(), false), KILN_OK) << model.Bound->Error.message;
      });
      EXPECT_TRUE(folder.read("many") == folder.read(isSwapped ? "swapped" : "before")) << isSwapped;
    }
  }
}

// Every stage detects errors in another stage's tensors, and none changes its weights.
TEST(Grids, StagesCheckAllOfTheFile) {
  const Folder folder;
  for (const Kind kind : {Kind{false}, Kind{true}}) {
    RankedModel one(0, 1, kind);
    ASSERT_NO_FATAL_FAILURE(one.fill(9));
    ASSERT_EQ(one.saveAlone(folder.at("one").c_str(), true), KILN_OK) << one.Bound->Error.message;
    for (const char *name : {"average:c.5.fused", "average:i.wide", "momentum:h.scale", "c.0.fused", "g.deep"}) {
      std::string bytes = folder.read("one");
      const size_t at = bytes.find('"' + std::string(name) + '"');
      ASSERT_NE(at, std::string::npos) << name;
      bytes[at + 1] = '_';
      std::ofstream(folder.at("other"), std::ios::binary) << bytes;
      asGrid({1, 1, 2}, kind, 3, [&](RankedModel &model, GridProcess &) {
        const std::string before = model.contents();
        EXPECT_EQ(model.load(folder.at("other").c_str()), KILN_WEIGHT_MISSING) << name;
        EXPECT_NE(std::string(model.Bound->Error.message).find('"' + std::string(name) + '"'), std::string::npos)
            << model.Bound->Error.message;
        EXPECT_TRUE(model.contents() == before) << name;
      });
    }
  }
}

/// Expects the error that all processes return if one of the grid cannot allocate its buffer, or, with `isMissing`, if
/// the first one cannot create the file.
void expectFailure(const Grid &grid, const Grid &failing, bool isMissing, kiln_status_t status,
                   const std::string &words) {
  const Folder folder;
  const std::string path = folder.at(isMissing ? "missing/file" : "file");
  asGrid(grid, {}, 1, [&](RankedModel &model, GridProcess &own) {
    if (!isMissing && own.Own.Ranks == failing.Ranks && own.Own.Replicas == failing.Replicas &&
        own.Own.Stages == failing.Stages)
      model.Bound->Counter.Limit = model.Bound->Counter.Made + 1;
    EXPECT_EQ(own.save(model, path.c_str(), true), status);
    EXPECT_EQ(std::string(model.Bound->Error.message).find("save_training_together failed on " + words), 0u)
        << model.Bound->Error.message;
  });
  EXPECT_EQ(folder.count(), 0u);
}

TEST(Grids, AFailureIsThatOfAll) {
  const std::string pieces = ": room for pieces of tensors: no memory; expected 4194304 bytes";
  const std::string large = ": room for pieces of tensors: no memory; expected 8388608 bytes";
  expectFailure({2, 2, 1}, {1, 1, 0}, false, KILN_OUT_OF_MEMORY, "rank 1 of 2, replica 1 of 2" + pieces);
  expectFailure({1, 1, 3}, {0, 0, 1}, false, KILN_OUT_OF_MEMORY, "stage 1 of 3" + large);
  expectFailure({2, 1, 2}, {1, 0, 1}, false, KILN_OUT_OF_MEMORY, "rank 1 of 2, stage 1 of 2" + pieces);
  expectFailure({2, 2, 2}, {1, 1, 1}, false, KILN_OUT_OF_MEMORY, "rank 1 of 2, replica 1 of 2, stage 1 of 2" + pieces);
  expectFailure({1, 1, 2}, {}, true, KILN_FILE_ERROR, "stage 0 of 2: cannot create weight file \"");
}

/// Loses one process in the group of stages or replicas. A process that detects the loss ends, so that the processes of
/// its other groups detect it too. Before the last message of the first process the old file remains; afterwards there
/// is a complete new one.
void expectLost(const Grid &grid, const Grid &lost, const std::string &words) {
  const Folder folder;
  RankedModel one(0, 1);
  ASSERT_NO_FATAL_FAILURE(one.fill(1));
  ASSERT_EQ(one.saveAlone(folder.at("file").c_str(), true), KILN_OK);
  const std::string whole = folder.read("file");
  for (int step = 0, failures = 1; failures > 0; ++step) {
    SCOPED_TRACE(step);
    std::mutex mutex;
    failures = 0;
    std::ofstream(folder.at("file"), std::ios::binary) << "old";
    asGrid(grid, {}, 1, [&](RankedModel &model, GridProcess &own) {
      const bool isLost =
          own.Own.Ranks == lost.Ranks && own.Own.Replicas == lost.Replicas && own.Own.Stages == lost.Stages;
      const bool isOfStages = grid.Stages > 1;
      Losing losing = {isOfStages ? &own.OfStages : &own.OfReplicas, isOfStages ? own.Stages : own.Replicas,
                       isLost ? step : 1 << 30};
      (isOfStages ? own.Stages : own.Replicas) = losing.get();
      const kiln_status_t status = own.save(model, folder.at("file").c_str(), true);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(status == KILN_OK || status == KILN_RANK_LOST) << status;
      failures += status == KILN_RANK_LOST;
      if (status) {
        const std::string message = model.Bound->Error.message;
        EXPECT_EQ(message.find("save_training_together on "), 0u) << message;
        EXPECT_TRUE(!isLost || message.find(words) != std::string::npos) << message;
        EXPECT_NE(message.find(" cannot finish: a rank is gone"), std::string::npos) << message;
        model.Bound->Kept = 2;
        own.lose();
      }
    });
    const std::string left = folder.read("file");
    EXPECT_TRUE(left == whole || (failures && left == "old"));
    EXPECT_EQ(folder.count(), 1u) << "a part is left";
    ASSERT_LT(step, 1000);
  }
}

TEST(Grids, ALostReplicaEndsTheOthers) { expectLost({2, 2, 1}, {0, 1, 0}, "rank 0 of 2, replica 1 of 2"); }
TEST(Grids, ALostStageEndsTheOthers) {
  expectLost({1, 1, 3}, {0, 0, 2}, "stage 2 of 3");
  expectLost({2, 1, 2}, {0, 0, 0}, "rank 0 of 2, stage 0 of 2");
  expectLost({2, 1, 2}, {1, 0, 1}, "rank 1 of 2, stage 1 of 2");
}

} // namespace
