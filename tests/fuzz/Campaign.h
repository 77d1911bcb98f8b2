// SPDX-License-Identifier: Apache-2.0
//
// Many trials: in child processes, several one after the other in each; where a child dies or hangs they are tried
// again alone. What comes out wrong is reduced and written as a spec.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "Trial.h"

namespace kiln::fuzz {

struct CampaignOptions {
  std::uint64_t firstSeed = 0;
  std::int64_t count = 1;
  std::vector<std::string> targets; // a model is tried on one of them, in turn
  unsigned jobs = 1;
  Options models;
  TrialOptions trial;
  bool reduces = true;
  int mostReduced = 20;      // of failures; more are only counted
  std::string folder;        // for the specs of failures; empty: none
  double secondsLimit = 60;  // of one trial
  bool drawsWeights = false; // of one model in ten how they are stored, in place of trial.weights
  bool drawsFloats = false;  // one model in ten is of f16 or of bf16, in place of models.element
};

struct Failure {
  std::uint64_t seed;
  std::string target;
  Verdict verdict;
  std::string spec; // reduced, if it was; how its weights are stored stands above, if they are
};

struct Summary {
  std::map<Verdict::Kind, std::int64_t> kinds;
  std::int64_t elements = 0, tight = 0, undetermined = 0, schedules = 0, batches = 0, together = 0;
  std::vector<Failure> failures;
};

/// `progress` hears of each batch, and of each failure when it is known.
Summary runCampaign(const CampaignOptions &options, const std::function<void(const Summary &)> &progress,
                    const std::function<void(const Failure &)> &onFailure);

/// The target of a model, and the model that a seed stands for: of those drawn one after another the first that can be
/// split, if it is to be.
std::string targetOf(std::uint64_t seed, const CampaignOptions &options);
RandomModel modelOf(std::uint64_t seed, const CampaignOptions &options);

/// The trial of that model: how its weights are stored is drawn, if it is to be, and if the target can read such ones.
TrialOptions trialOf(const RandomModel &model, std::uint64_t seed, const CampaignOptions &options);

/// The spec of a model, below a comment that says how its weights are stored, if they are.
std::string describe(const RandomModel &model, const TrialOptions &trial);

/// Tries one model in a process of its own.
Verdict tryAlone(const RandomModel &model, std::uint64_t seed, const CampaignOptions &options,
                 const TrialOptions &trial);

} // namespace kiln::fuzz
