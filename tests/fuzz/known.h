// SPDX-License-Identifier: Apache-2.0
//
// Tests of what the random models have found: a small spec is traced, compiled for each instruction set that this CPU
// has and for GPUs, run, and compared with the interpreter.
#pragma once

#include <gtest/gtest.h>

#include "Campaign.h"
#include "tests/targets/RunnableTargets.h"

#include "kiln/dsl.h"

namespace kiln::fuzz {

/// A model of small inputs; integers lie in [-4, 4] unless the run time wants others, booleans are drawn.
template <class M> RandomModel knownModel() {
  RandomModel model{trace<M>(), {}, {}, {}};
  for (const Entry &entry : model.graph.entries) {
    auto &inputs = model.inputs.emplace_back();
    for (int argument : model.graph.regions[entry.region].arguments) {
      const bool isInteger = model.graph.nodes[argument].element == ElementType::i32;
      inputs.push_back({isInteger ? -4.0 : -2.0, isInteger ? 4.0 : 2.0, isInteger, ""});
    }
  }
  return model;
}

/// Runs the model; its weights are stored as its spec says and else as `weights` ("f16"), where targets can read such
/// ones. `int8Rows`: those of int8 are multiplied by rows of int8.
template <class M> void expectRight(const std::string &weights = "", bool int8Rows = false) {
  const RandomModel model = knownModel<M>();
  CampaignOptions options;
  options.trial.schedules = int8Rows ? 1 : 2; // of a level more
  options.trial.int8Rows = int8Rows;
  std::vector<std::string> targets = int8Rows ? testing::runnableLevels() : testing::runnableTargets();
  targets.push_back("cuda");
  for (const std::string &target : targets) {
    options.targets = {target};
    options.trial.weights = target == "cuda" ? "f32 except *=f32" : weights;
    const Verdict verdict = tryAlone(model, 7, options, options.trial);
    EXPECT_EQ(verdict.kind, Verdict::Kind::Right) << target << ": " << toString(verdict.kind) << ": " << verdict.words;
    EXPECT_GT(verdict.elements, verdict.undetermined);
  }
}

/// Runs the model as the trial says, some of whose calls are to be of that kind.
template <class M> void expectTrialRight(const TrialOptions &trial, std::int64_t Verdict::*calls) {
  const RandomModel model = knownModel<M>();
  CampaignOptions options;
  for (const std::string &target : testing::runnableTargets()) {
    options.targets = {target};
    const Verdict verdict = tryAlone(model, 7, options, trial);
    EXPECT_EQ(verdict.kind, Verdict::Kind::Right) << target << ": " << toString(verdict.kind) << ": " << verdict.words;
    EXPECT_GT(verdict.*calls, 0);
  }
}

/// A test of one model, given by its `forward`.
#define KNOWN(name, ...)                                                                                               \
  struct name : Model {                                                                                                \
    constexpr auto forward __VA_ARGS__                                                                                 \
  };                                                                                                                   \
  TEST(Known, name) { expectRight<name>(); }

} // namespace kiln::fuzz
