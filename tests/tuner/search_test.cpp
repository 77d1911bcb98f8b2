// SPDX-License-Identifier: Apache-2.0
// The search on known costs: it finds the minimum soon, never proposes illegal or measured configurations, and reports
// when nothing is left.
#include "compiler/tuner/CostModel.h"
#include "compiler/tuner/Search.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>

namespace kiln {
namespace {

double flat(const ScheduleConfig &) { return 0; }

SearchSpace smallSpace() {
  return {makeParameter("m", {1, 2, 4, 6, 8, 12, 16}, 4), makeParameter("n", {16, 32, 48, 64}, 16),
          makeParameter("k", {64, 128, 256, 384, 768}, 768), makeParameter("order", {0, 1}, 0)};
}

/// A bowl around one configuration, in the logarithm of the values, with a ripple.
double bowl(const ScheduleConfig &config) {
  double cost = 0.5;
  for (auto [key, best] : {std::pair("m", 12.0), {"n", 48.0}, {"k", 256.0}})
    cost += 0.2 * std::pow(std::log2(double(config.at(key)) / best), 2);
  return cost + (config.at("order") == 1 ? 0.0 : 0.3);
}

/// Runs the search in generations. Returns the number of configurations until the wanted cost, or all of them.
size_t configsUntil(Search &search, double (*cost)(const ScheduleConfig &), double wanted, size_t most) {
  std::set<ScheduleConfig> seen;
  ScheduleConfig start;
  while (seen.size() < most) {
    std::vector<ScheduleConfig> configs = search.propose(4);
    if (configs.empty())
      break;
    for (const ScheduleConfig &config : configs) {
      EXPECT_TRUE(seen.insert(config).second) << toString(config) << " came twice";
      search.record(config, cost(config));
      if (search.bestCost() <= wanted * 1.0001)
        return seen.size();
    }
  }
  return std::numeric_limits<size_t>::max();
}

TEST(Search, FindsTheLeastCostWithoutAModel) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Search search(smallSpace(), flat, seed);
    ASSERT_EQ(search.size(), 7u * 4 * 5 * 2);
    search.record(defaultConfigOf(smallSpace()), bowl(defaultConfigOf(smallSpace())));
    EXPECT_LE(configsUntil(search, bowl, 0.5, 280), 100u) << "seed " << seed;
  }
}

TEST(Search, AGoodModelFindsItAtOnce) {
  Search search(smallSpace(), [](const ScheduleConfig &config) { return std::log(bowl(config)); }, 1);
  EXPECT_EQ(configsUntil(search, bowl, 0.5, 280), 1u);
}

TEST(Search, AMisleadingModelIsOvercome) {
  Search search(smallSpace(), [](const ScheduleConfig &config) { return -0.3 * std::log(bowl(config)); }, 1);
  EXPECT_LE(configsUntil(search, bowl, 0.5, 280), 150u);
}

TEST(Search, EndsWhenTheSpaceIsUsedUp) {
  SearchSpace space{makeParameter("a", {1, 2, 3}, 1), makeParameter("b", {0, 1}, 0)};
  Search search(space, flat, 1);
  EXPECT_EQ(
      configsUntil(search, [](const ScheduleConfig &) { return 2.0; }, 0, 100), std::numeric_limits<size_t>::max());
  EXPECT_EQ(search.measured(), 6u);
  EXPECT_TRUE(search.propose(1).empty());
  EXPECT_EQ(search.bestCost(), 1);
}

// A space too large to enumerate: a trillion configurations, searched by descent from the best ones.
TEST(Search, LargeSpace) {
  SearchSpace space;
  std::vector<int64_t> values;
  for (int64_t value = 0; value < 32; ++value)
    values.push_back(value);
  for (const char *key : {"a", "b", "c", "d", "e", "f", "g", "h"})
    space.push_back(makeParameter(key, values, 0));
  Search search(space, flat, 7);
  EXPECT_EQ(search.size(), std::nullopt);
  auto cost = [](const ScheduleConfig &config) {
    double sum = 0.1;
    for (const auto &[key, value] : config)
      sum += std::pow(double(value - 20) / 20, 2) / 8;
    return sum;
  };
  search.record(defaultConfigOf(space), cost(defaultConfigOf(space)));
  EXPECT_NE(configsUntil(search, cost, 0.13, 600), std::numeric_limits<size_t>::max());
}

// The search avoids the neighbours of failed configurations, and does not propose these again.
TEST(Search, AvoidsWhatFails) {
  SearchSpace space = smallSpace();
  Search search(space, flat, 3);
  size_t failures = 0;
  for (int generation = 0; generation < 15; ++generation)
    for (const ScheduleConfig &config : search.propose(4)) {
      bool fails = config.at("n") >= 48;
      failures += fails;
      search.record(config, fails ? std::nullopt : std::optional(1.0));
    }
  EXPECT_GT(failures, 0u);
  EXPECT_LT(failures, 25u) << "half of all points fail, and half of those proposed";
}

TEST(Search, ResumesFromRecords) {
  Search first(smallSpace(), flat, 5);
  std::vector<std::pair<ScheduleConfig, double>> records;
  for (int generation = 0; generation < 5; ++generation)
    for (const ScheduleConfig &config : first.propose(4)) {
      first.record(config, bowl(config));
      records.push_back({config, bowl(config)});
    }
  Search second(smallSpace(), flat, 99);
  for (const auto &[config, cost] : records)
    second.record(config, cost);
  EXPECT_EQ(second.propose(4), first.propose(4));
  EXPECT_EQ(second.bestCost(), first.bestCost());
  second.record({{"m", 3}, {"n", 16}, {"k", 64}, {"order", 0}}, 0.001); // from another space
  second.record({{"m", 4}}, 0.001);
  EXPECT_EQ(second.measured(), first.measured());
}

TEST(CostModel, PrefersTilesThatFit) {
  MachineModel machine;
  machine.vectorBytes = 64;
  machine.vectorRegisters = 32;
  SearchSpace space{makeParameter("m", {1, 4, 8, 12, 16}, 8), makeParameter("n", {16, 48, 96}, 48)};
  CostModel model = makeCostModel("contraction", space, {128, 768, 768}, machine);
  double full = model({{"m", 8}, {"n", 48}});
  EXPECT_LT(full, model({{"m", 1}, {"n", 48}})) << "few sums wait for each other";
  EXPECT_LT(full, model({{"m", 16}, {"n", 96}})) << "they do not fit the registers";
  CostModel ragged = makeCostModel("contraction", space, {9, 768, 768}, machine);
  EXPECT_GT(ragged({{"m", 8}, {"n", 48}}), ragged({{"m", 12}, {"n", 16}})) << "9 rows are 16 by tiles of 8";
  CostModel other = makeCostModel("row_reduction", space, {}, machine);
  EXPECT_EQ(other(defaultConfigOf(space)), 0);
  EXPECT_GT(other({{"m", 16}, {"n", 48}}), other({{"m", 12}, {"n", 48}}));
}

} // namespace
} // namespace kiln
