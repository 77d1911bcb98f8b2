// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Search.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

namespace kiln {

/// Spaces up to this size are enumerated; larger ones are sampled.
static constexpr size_t mostListed = 20'000, drawn = 400;
/// The distance, as a share of the parameters' ranges, within which configurations are informative about each other. A
/// parameter of few values counts as one of four, so that a binary switch does not separate all measurements.
static constexpr double reach = 0.25;
/// The weight of the model relative to one measurement, and the bonus for unexplored configurations.
static constexpr double modelWeight = 0.5, hope = 0.05;
/// The logarithmic cost of a failed configuration, above the model's.
static constexpr double failedCost = 1;
static constexpr size_t elites = 6;
static constexpr double improvement = 0.005;

Search::Search(SearchSpace searchSpace, CostModel costModel, uint64_t seed)
    : space(std::move(searchSpace)), model(std::move(costModel)), engine(seed) {
  size_t combinations = 1;
  for (const TuningParameter &parameter : space)
    combinations = combinations > mostListed ? combinations : combinations * parameter.values.size();
  isListed = combinations <= mostListed;
  for (size_t number = 0; isListed && number < combinations; ++number) {
    Indices at;
    size_t rest = number;
    for (const TuningParameter &parameter : space) {
      at.push_back(rest % parameter.values.size());
      rest /= parameter.values.size();
    }
    if (isLegal(at))
      legal.push_back(std::move(at));
  }
}

std::optional<size_t> Search::size() const { return isListed ? std::optional(legal.size()) : std::nullopt; }

std::optional<Search::Indices> Search::indicesOf(const ScheduleConfig &config) const {
  Indices at;
  for (const TuningParameter &parameter : space) {
    auto value = config.find(parameter.key);
    if (value == config.end())
      return std::nullopt;
    auto found = llvm::find(parameter.values, value->second);
    if (found == parameter.values.end())
      return std::nullopt;
    at.push_back(found - parameter.values.begin());
  }
  return at;
}

ScheduleConfig Search::configOf(const Indices &at) const {
  ScheduleConfig config;
  for (auto [parameter, index] : llvm::zip(space, at))
    config[parameter.key] = parameter.values[index];
  return config;
}

bool Search::isLegal(const Indices &at) const {
  ScheduleConfig config = configOf(at);
  std::string error;
  return resolve(space, &config, error).has_value();
}

void Search::record(const ScheduleConfig &config, std::optional<double> cost) {
  std::optional<Indices> at = indicesOf(config);
  if (!at || !taken.insert(*at).second)
    return;
  double foretold = model(config), measured = cost ? std::log(*cost) : foretold + failedCost;
  samples.push_back({*at, measured, measured - foretold});
  if (cost && *cost < best * (1 - improvement))
    stale = 0;
  else
    ++stale;
  if (cost)
    best = std::min(best, *cost);
}

double Search::expectedCost(const Indices &at) const {
  double weights = 0, residuals = 0;
  for (const Sample &sample : samples) {
    double distance = 0;
    for (auto [parameter, a, b] : llvm::zip(space, at, sample.at))
      if (a != b)
        distance += std::pow((double(a) - double(b)) / double(std::max<size_t>(parameter.values.size() - 1, 3)), 2);
    double weight = std::exp(-distance / (2 * reach * reach));
    weights += weight;
    residuals += weight * sample.residual;
  }
  return model(configOf(at)) + residuals / (weights + modelWeight) - hope / std::sqrt(1 + weights);
}

/// Adds children of the best configurations: neighbours in one or two parameters, and crossovers of two of them.
void Search::addOffspring(std::set<Indices> &pool) {
  std::vector<Sample> sorted = samples;
  llvm::stable_sort(sorted, [](const Sample &a, const Sample &b) { return a.cost < b.cost; });
  sorted.resize(std::min(sorted.size(), elites));
  for (const Sample &parent : sorted) {
    for (size_t i = 0; i < space.size(); ++i)
      for (int step : {-1, 1}) {
        Indices child = parent.at;
        child[i] += step;
        if (child[i] < space[i].values.size())
          pool.insert(child);
      }
    for (size_t attempt = 0; attempt < 4 * space.size(); ++attempt) {
      Indices child = parent.at;
      const Indices &other = sorted[random(sorted.size())].at;
      for (size_t i = 0; i < space.size(); ++i)
        if (random(2))
          child[i] = other[i];
      size_t mutated = random(space.size());
      child[mutated] = random(space[mutated].values.size());
      pool.insert(child);
    }
  }
}

std::vector<ScheduleConfig> Search::propose(size_t count) {
  std::set<Indices> pool;
  if (isListed) {
    pool.insert(legal.begin(), legal.end());
  } else {
    addOffspring(pool);
    for (size_t attempt = 0; attempt < drawn; ++attempt) {
      Indices at;
      for (const TuningParameter &parameter : space)
        at.push_back(random(parameter.values.size()));
      pool.insert(std::move(at));
    }
  }
  std::vector<std::pair<double, Indices>> candidates;
  for (const Indices &at : pool)
    if (!taken.count(at) && (isListed || isLegal(at)))
      candidates.push_back({expectedCost(at), at});
  llvm::sort(candidates);
  std::vector<ScheduleConfig> configs;
  for (size_t i = 0; i < std::min(count, candidates.size()); ++i)
    configs.push_back(configOf(candidates[i].second));
  return configs;
}

} // namespace kiln
