// SPDX-License-Identifier: Apache-2.0
//
// The layout of libraries for several processes: which part of each tensor a process has, and where its states are.
#include "compiler/library/Interface.h"
#include "runtime/src/core/model.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

/// Two ranks and three stages, of which the stages have 2, 3 and 2 of 7 layers. "h.{}.w" is [8, 8] and split by rows,
/// "head" is [4] on the last stage. Each has a mean; that of "h.{}.w" is shared by two replicas.
ModelInterface divided() {
  ModelInterface model;
  model.weights = {{"h.{}.w", ElementType::f32, {4, 8}, 3, {3}}, {"head", ElementType::f32, {4}, 1, {}}};
  model.states = {{"cache", ElementType::f32, {3}, 1, {}}};
  model.optimizerStates = {{"mean:h.{}.w", ElementType::f32, {16}, 3, {3}},
                           {"mean:head", ElementType::f32, {4}, 1, {}}};
  EntryInterface &entry = model.entries.emplace_back();
  entry.name = "train";
  entry.changesWeights = true;
  ParallelLayout &layout = model.parallel.emplace();
  layout.ranks = layout.replicas = 2;
  layout.stages = 3;
  layout.roles = {0, 2, 1}; // first, last, middle
  layout.weights.resize(2);
  layout.states.resize(1);
  layout.optimizerStates.resize(2);
  layout.weights[0].slice = WeightSlice{0, 8, {{0, 4, 4, 1}}};
  layout.weights[0].allCopies = layout.optimizerStates[0].allCopies = 7;
  layout.weights[1].absent = layout.optimizerStates[1].absent = 0b101;
  layout.optimizerStates[0].parts = 2;
  layout.optimizerStates[0].sharedShape = {4, 8};
  model.placeStates();
  return model;
}

TEST(ParallelLayout, StagesOfOneRoleHaveEqualLayers) {
  const ModelInterface model = divided();
  const ParallelLayout &layout = *model.parallel;
  EXPECT_EQ(layout.roleOf(0), 0U);
  EXPECT_EQ(layout.roleOf(1), 2U);
  EXPECT_EQ(layout.roleOf(2), 1U);
  for (auto [role, copies] : {std::pair(0, 2), std::pair(1, 2), std::pair(2, 3)})
    EXPECT_EQ(layout.copiesOf(layout.weights[0], model.weights[0].copies, role), copies) << role;
  for (auto [role, copies] : {std::pair(0, 0), std::pair(1, 1), std::pair(2, 0)})
    EXPECT_EQ(layout.copiesOf(layout.weights[1], model.weights[1].copies, role), copies) << role;
}

TEST(ParallelLayout, FileHasTheWholeModel) {
  const std::vector<WeightInterface> weights = fileWeights(divided());
  EXPECT_EQ(weights[0].shape, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(weights[0].copies, 7);
  EXPECT_EQ(weights[1].shape, std::vector<int64_t>{4});
  EXPECT_EQ(weights[1].copies, 1);
}

TEST(ParallelLayout, EachRoleHasItsOptimizerStateAfterTheStates) {
  const ModelInterface model = divided();
  const uint64_t states = KILN_MARK_BYTES + KILN_ARENA_ROUND(3 * sizeof(float));
  const uint64_t layer = KILN_ARENA_ROUND(16 * sizeof(float)), head = KILN_ARENA_ROUND(4 * sizeof(float));
  const uint64_t first = states + KILN_MARK_BYTES;
  EXPECT_EQ(model.stateBytes, states);
  for (uint32_t role = 0; role < 3; ++role) {
    EXPECT_EQ(offsetOf(model, model.states[0], role), static_cast<uint64_t>(KILN_MARK_BYTES));
    EXPECT_EQ(offsetOf(model, model.optimizerStates[0], role), first);
    EXPECT_EQ(offsetOf(model, model.optimizerStates[1], role), first + (role == 2 ? 3 : 2) * layer) << role;
  }
  EXPECT_EQ(model.trainingBytes, first + std::max(3 * layer, 2 * layer + head));
}

TEST(ParallelLayout, UnfoldedTensorsKeepTheirParts) {
  ModelInterface model = divided();
  std::vector<Variant> variants;
  unfoldNestedStacks(model, variants);
  ASSERT_EQ(model.parallel->weights.size(), model.weights.size());
  EXPECT_EQ(model.parallel->weights[0].allCopies, 7);
  const std::vector<TrainingState> states = trainingStates(model);
  ASSERT_EQ(states.size(), 3U);
  EXPECT_EQ(states[0].state.name, "state:cache");
  EXPECT_EQ(states[0].layout->offsets, std::vector<uint64_t>(3, KILN_MARK_BYTES));
  EXPECT_EQ(states[1].layout->parts, 2);
  EXPECT_EQ(states[2].layout->absent, 0b101U);
}

TEST(ParallelLayout, OneProcessHasNone) {
  ModelInterface model = divided();
  model.parallel.reset();
  model.placeStates();
  const std::vector<TrainingState> states = trainingStates(model);
  ASSERT_EQ(states.size(), 3U);
  EXPECT_FALSE(states[0].layout);
  EXPECT_EQ(fileWeights(model)[0].shape, model.weights[0].shape);
  EXPECT_EQ(offsetOf(model, model.optimizerStates[1], 0), model.optimizerStates[1].offset);
}

} // namespace
} // namespace kiln
