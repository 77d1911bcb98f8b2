// SPDX-License-Identifier: Apache-2.0
//
// Which point of a search space to measure next. It holds no state but what was measured, so that a resumed run goes on
// where the last one ended.
//
// 1. An analytic model orders all points; the best of them are the first generation.
// 2. Later generations are the neighbours and crossings of the best measured points, and some points from anywhere.
//    They are ordered by the model, corrected by what nearby points turned out to cost; a point far from all measured
//    ones gets a bonus.
// Measuring stops early on a bad candidate (compiler/tuner/Compare.h), so that generations are halved by racing.
#pragma once

#include "compiler/schedule/SearchSpace.h"

#include <functional>
#include <random>
#include <set>

namespace kiln {

/// The natural logarithm of a point's time relative to the others, as far as it can be foretold.
using CostModel = std::function<double(const SchedulePoint &)>;

class Search {
public:
  Search(SearchSpace space, CostModel model, uint64_t seed);

  /// A point's time relative to the default's; nothing for one that failed. Points of other spaces are ignored.
  void record(const SchedulePoint &point, std::optional<double> cost);

  /// Up to `count` legal points that are not recorded, the most promising first; fewer when the space is used up.
  std::vector<SchedulePoint> propose(size_t count);

  /// How many points were recorded, and how many have been since the best became more than 0.5 % better.
  size_t measured() const { return samples.size(); }
  size_t sinceBest() const { return stale; }
  /// The least cost; 1 before anything is recorded.
  double bestCost() const { return best; }
  /// How many legal points there are; nothing if too many to count.
  std::optional<size_t> size() const;

private:
  using Indices = std::vector<size_t>; // one a parameter: the number of its value
  struct Sample {
    Indices at;
    double cost, residual; // the cost's logarithm; what the model did not foretell of it
  };

  std::optional<Indices> indicesOf(const SchedulePoint &point) const;
  SchedulePoint pointOf(const Indices &at) const;
  bool isLegal(const Indices &at) const;
  double expectedCost(const Indices &at) const;
  void addOffspring(std::set<Indices> &pool);
  size_t random(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(engine); }

  SearchSpace space;
  CostModel model;
  std::mt19937_64 engine;
  std::vector<Sample> samples;
  std::set<Indices> taken;    // recorded
  std::vector<Indices> legal; // all of them, if they can be listed
  bool isListed = false;
  double best = 1;
  size_t stale = 0;
};

} // namespace kiln
