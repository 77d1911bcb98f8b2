// SPDX-License-Identifier: Apache-2.0
//
// Runs many trials in child processes, several in each; after a child dies or hangs, its models are tried again one by
// one. Models that fail are reduced and written as specs.
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
  std::vector<std::string> targets; // each model is tried on one of them, in turn
  unsigned jobs = 1;
  Options models;
  TrialOptions trial;
  bool reduces = true;
  int mostReduced = 20;      // failures that are reduced; further ones are only counted
  std::string folder;        // for the specs of failures; empty for none
  double secondsLimit = 60;  // per trial
  bool drawsWeights = false; // draws storage formats for one model in ten, instead of trial.weights
  bool drawsFloats = false;  // makes one model in ten f16 or bf16, instead of models.element
};

struct Failure {
  std::uint64_t seed;
  std::string target;
  Verdict verdict;
  std::string spec; // reduced if reduction is on; a comment above it states the storage formats, if any
};

struct Summary {
  std::map<Verdict::Kind, std::int64_t> kinds;
  std::int64_t elements = 0, tight = 0, undetermined = 0, schedules = 0, batches = 0, together = 0;
  std::vector<Failure> failures;
};

/// `progress` is called after each batch of models, `onFailure` for each failure.
Summary runCampaign(const CampaignOptions &options, const std::function<void(const Summary &)> &progress,
                    const std::function<void(const Failure &)> &onFailure);

/// Return the target of a seed's model, and the model. If models are to be split, the model is the first of a sequence
/// of random models that can be split.
std::string targetOf(std::uint64_t seed, const CampaignOptions &options);
RandomModel modelOf(std::uint64_t seed, const CampaignOptions &options);

/// Returns the options of that model's trial, with random storage formats if these are enabled and the target supports
/// them.
TrialOptions trialOf(const RandomModel &model, std::uint64_t seed, const CampaignOptions &options);

/// Returns the spec of a model, below a comment with its storage formats, if any.
std::string describe(const RandomModel &model, const TrialOptions &trial);

/// Tries one model in a separate process.
Verdict tryAlone(const RandomModel &model, std::uint64_t seed, const CampaignOptions &options,
                 const TrialOptions &trial);

} // namespace kiln::fuzz
