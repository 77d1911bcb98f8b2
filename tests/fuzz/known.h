// SPDX-License-Identifier: Apache-2.0
//
// Regression tests of failures that random models have found: a small spec is traced, compiled for GPUs and for each
// instruction set that this CPU has, run, and compared with the interpreter.
#pragma once

#include <gtest/gtest.h>

#include "Campaign.h"
#include "tests/targets/RunnableTargets.h"

#include "kiln/dsl.h"

namespace kiln::fuzz {

/// Builds a model with small inputs: integers in [-4, 4] unless the runtime requires others, random booleans.
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

/// Tests the model. Its weights have the storage formats of its spec, and otherwise `weights` ("f16") on targets that
/// support it. `int8Rows`: int8 weights are multiplied by int8 activations.
template <class M> void expectRight(const std::string &weights = "", bool int8Rows = false) {
  const RandomModel model = knownModel<M>();
  CampaignOptions options;
  options.trial.schedules = int8Rows ? 1 : 2; // one more instruction set is tested
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

/// Tests the model with the options of the trial, and expects that the counter `calls` of the verdict is not 0.
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

/// Defines a test of one model, given by its `forward`.
#define KNOWN(name, ...)                                                                                               \
  struct name : Model {                                                                                                \
    constexpr auto forward __VA_ARGS__                                                                                 \
  };                                                                                                                   \
  TEST(Known, name) { expectRight<name>(); }

} // namespace kiln::fuzz
