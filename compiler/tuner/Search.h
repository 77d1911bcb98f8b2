// SPDX-License-Identifier: Apache-2.0
//
// Proposes the next configuration to measure. Its only state is the measurements, so that a run can be resumed.
//
// 1. An analytic model ranks all configurations; the best of them are the first generation.
// 2. Later generations are neighbours and crossovers of the best measured configurations, and some random ones. They
// are ranked by the model, corrected by the measured costs of nearby configurations; a configuration far from all
// measured ones gets a bonus.
// Measuring stops early on a bad candidate (compiler/tuner/Compare.h), so that generations are halved by racing.
#pragma once

#include "compiler/schedule/SearchSpace.h"

#include <functional>
#include <random>
#include <set>

namespace kiln {

/// The predicted natural logarithm of a configuration's time relative to the others.
using CostModel = std::function<double(const ScheduleConfig &)>;

class Search {
public:
  Search(SearchSpace space, CostModel model, uint64_t seed);

  /// Records a configuration's time relative to the default's; nullopt if it failed. Configurations of other spaces are
  /// ignored.
  void record(const ScheduleConfig &config, std::optional<double> cost);

  /// Returns up to `count` legal unrecorded configurations, the most promising first; fewer when the space is
  /// exhausted.
  std::vector<ScheduleConfig> propose(size_t count);

  /// Returns the number of recorded configurations, and the number since the best last improved by more than 0.5 %.
  size_t measured() const { return samples.size(); }
  size_t sinceBest() const { return stale; }
  /// Returns the lowest cost; 1 before anything is recorded.
  double bestCost() const { return best; }
  /// Returns the number of legal configurations; nullopt if there are too many to count.
  std::optional<size_t> size() const;

private:
  using Indices = std::vector<size_t>; // the index of each parameter's value
  struct Sample {
    Indices at;
    double cost, residual; // the cost's logarithm; its difference from the model
  };

  std::optional<Indices> indicesOf(const ScheduleConfig &config) const;
  ScheduleConfig configOf(const Indices &at) const;
  bool isLegal(const Indices &at) const;
  double expectedCost(const Indices &at) const;
  void addOffspring(std::set<Indices> &pool);
  size_t random(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(engine); }

  SearchSpace space;
  CostModel model;
  std::mt19937_64 engine;
  std::vector<Sample> samples;
  std::set<Indices> taken;    // recorded
  std::vector<Indices> legal; // all of them, if they can be enumerated
  bool isListed = false;
  double best = 1;
  size_t stale = 0;
};

} // namespace kiln
