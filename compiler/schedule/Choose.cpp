// SPDX-License-Identifier: Apache-2.0
//
// A loss is the logarithm of a time divided by the best time under the same condition (dimensions and threads), so that
// the mean of losses is the geometric mean.
#include "compiler/schedule/Choose.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace kiln {

/// Beyond this distance of logarithms no shape is near: a factor of e^3 in one dimension, or less in each of several.
static constexpr double farthest = 3;
/// The difference of a configuration's losses under two conditions, if no configuration was measured under both.
static constexpr double usualDifference = 0.1;

llvm::StringRef toString(Provenance provenance) {
  switch (provenance) {
  case Provenance::Exact:
    return "exact";
  case Provenance::Transferred:
    return "transferred";
  case Provenance::Default:
    break;
  }
  return "default";
}

/// Returns the distance of two numbers: that of their logarithms for large ones; defined for all numbers.
static double apart(int64_t a, int64_t b) { return std::abs(std::asinh(double(a)) - std::asinh(double(b))); }

ScheduleConfig snap(const SearchSpace &space, const ScheduleConfig &config) {
  ScheduleConfig legal = defaultConfigOf(space);
  auto take = [&](const TuningParameter &parameter) {
    auto wanted = config.find(parameter.key);
    if (wanted == config.end())
      return;
    auto distance = [&](int64_t value) { return apart(value, wanted->second); };
    int64_t nearest = parameter.values.front();
    for (int64_t value : parameter.values)
      if (distance(value) < distance(nearest) - 1e-12)
        nearest = value;
    int64_t before = std::exchange(legal[parameter.key], nearest);
    if (!obeysRules(space, legal))
      legal[parameter.key] = before;
  };
  // Two rounds: a value that a rule forbids with another parameter's default may be allowed with that parameter's final
  // value.
  for (int round = 0; round < 2; ++round)
    for (const TuningParameter &parameter : space)
      take(parameter);
  return legal;
}

/// Returns the configuration itself if it is legal, with defaults for newer parameters; else the nearest legal one.
static ScheduleConfig legalConfig(const SearchSpace &space, const ScheduleConfig &config) {
  std::string ignored;
  std::optional<ScheduleConfig> resolved = resolve(space, &config, ignored);
  return resolved ? *resolved : snap(space, config);
}

std::string tuningDigest(std::vector<std::string> lines) {
  if (lines.empty())
    return "none";
  llvm::sort(lines);
  lines.erase(llvm::unique(lines), lines.end());
  return hashText(llvm::join(lines, "\n"), 16);
}

llvm::Expected<ScheduleChooser> ScheduleChooser::create(const TuningDatabase &database, const ChooseOptions &options) {
  ScheduleChooser chooser;
  chooser.threads = options.threads;
  std::map<Machine, size_t> counts;
  for (const auto &[of, result] : database.records())
    counts[of.machine] += result.outcome == Outcome::Measured;
  for (const auto &[machine, count] : counts)
    if (llvm::StringRef(toString(machine)).contains(options.machine))
      chooser.machines[machine.isa].push_back(machine);

  auto list = [](const auto &range) {
    return llvm::join(llvm::map_range(range, [](const auto &entry) { return toString(entry); }), ", ");
  };
  if (!options.machine.empty() && chooser.machines.empty()) {
    std::vector<Machine> known;
    for (const auto &[machine, count] : counts)
      known.push_back(machine);
    return llvm::createStringError(llvm::formatv("the tuning file has no machine \"{0}\"; it has: {1}", options.machine,
                                                 known.empty() ? "none" : list(known)));
  }
  for (auto &[isa, machines] : chooser.machines) {
    if (!options.machine.empty() && machines.size() > 1)
      return llvm::createStringError(llvm::formatv("machine \"{0}\": its name is ambiguous; expected one of: {1}",
                                                   options.machine, list(machines)));
    llvm::stable_sort(machines, [&](const Machine &a, const Machine &b) { return counts[a] > counts[b]; });
  }

  for (const auto &[of, result] : database.records()) {
    if (!llvm::is_contained(chooser.machines[of.machine.isa], of.machine))
      continue;
    Group &group = chooser.index[{of.machine, of.strategy}][of.structure][{of.shape, of.bounds}];
    group.countsThreads = !of.machine.isGpu();
    if (result.outcome != Outcome::Measured)
      group.refused.insert(of.config);
    else
      group.conditions[{of.threads, of.extents}][of.config] = result;
    if (result.isDefault)
      group.defaultConfig = of.config;
  }
  return chooser;
}

bool ScheduleChooser::hasThreads(const Group &group) const {
  return threads == 0 || !group.countsThreads ||
         llvm::any_of(group.conditions, [&](const auto &condition) { return condition.first.first == threads; });
}

/// Returns the relevant conditions: those with the requested number of threads, or the nearest one that was measured.
std::vector<const std::pair<const ScheduleChooser::Condition, ScheduleChooser::Measurements> *>
ScheduleChooser::relevant(const Group &group) const {
  const bool isAnyNumber = threads == 0 || !group.countsThreads;
  auto away = [&](int64_t count) { return isAnyNumber ? 0 : std::abs(std::log(double(count) / double(threads))); };
  double least = std::numeric_limits<double>::infinity();
  for (const auto &condition : group.conditions)
    least = std::min(least, away(condition.first.first));
  std::vector<const std::pair<const Condition, Measurements> *> result;
  for (const auto &condition : group.conditions)
    if (away(condition.first.first) <= least)
      result.push_back(&condition);
  return result;
}

/// Ranks the configurations by mean loss. A loss that was not measured under a condition is predicted from the
/// configuration's losses under the others and the mean difference of other configurations between the two conditions.
std::vector<ScheduleChooser::Ranked>
ScheduleChooser::rank(const Group &group, llvm::function_ref<bool(const ScheduleConfig &)> isLegal) const {
  std::vector<std::map<ScheduleConfig, double>> losses;
  std::set<ScheduleConfig> configs;
  for (const auto *condition : relevant(group)) {
    std::map<ScheduleConfig, double> &at = losses.emplace_back();
    double best = std::numeric_limits<double>::infinity();
    for (const auto &[config, result] : condition->second)
      if (!group.refused.count(config) && isLegal(config)) {
        at[config] = std::log(result.microseconds);
        best = std::min(best, at[config]);
        configs.insert(config);
      }
    for (auto &[config, loss] : at)
      loss -= best;
    if (at.empty())
      losses.pop_back();
  }

  size_t count = losses.size();
  std::vector<std::vector<double>> differences(count, std::vector<double>(count, usualDifference));
  for (size_t a = 0; a < count; ++a)
    for (size_t b = 0; b < count; ++b) {
      double sum = 0;
      size_t both = 0;
      for (const auto &[config, loss] : losses[a])
        if (auto other = losses[b].find(config); other != losses[b].end()) {
          sum += std::abs(loss - other->second);
          ++both;
        }
      if (both > 0)
        differences[a][b] = sum / both;
    }

  std::vector<Ranked> ranked;
  for (const ScheduleConfig &config : configs) {
    double sum = 0;
    for (size_t at = 0; at < count; ++at) {
      if (auto known = losses[at].find(config); known != losses[at].end()) {
        sum += known->second;
        continue;
      }
      double predicted = 0;
      size_t from = 0;
      for (size_t other = 0; other < count; ++other)
        if (auto known = losses[other].find(config); known != losses[other].end()) {
          predicted += known->second + differences[other][at];
          ++from;
        }
      sum += predicted / from;
    }
    ranked.push_back({sum / count, config});
  }
  llvm::sort(ranked);
  return ranked;
}

static bool anyConfig(const ScheduleConfig &) { return true; }

double ScheduleChooser::distance(const Shape &from, const Shape &to, const Group &group) const {
  double sum = 0;
  if (from.first.size() != to.first.size() || from.second.size() != to.second.size())
    return std::numeric_limits<double>::infinity();
  for (auto [a, b] : llvm::zip_equal(from.first, to.first))
    sum += apart(a, b);
  for (auto [a, b] : llvm::zip_equal(from.second, to.second))
    sum += apart(a.min, b.min) + apart(a.max, b.max);
  if (threads != 0 && group.countsThreads)
    if (auto conditions = relevant(group); !conditions.empty())
      sum += std::abs(std::log(double(conditions.front()->first.first) / double(threads)));
  return sum;
}

/// Adds the records of configuration `of.config` in the group to the choice.
void ScheduleChooser::takeRecords(ScheduleChoice &choice, const TuningCase &of, const Group &group) const {
  TuningCase line = of;
  for (const auto *condition : relevant(group))
    if (auto found = condition->second.find(of.config); found != condition->second.end()) {
      std::tie(line.threads, line.extents) = condition->first;
      choice.records.push_back(toString(line, found->second));
      choice.measuredAt.insert(line.extents);
    }
  llvm::sort(choice.records);
}

std::optional<double> ScheduleChooser::gainOf(const ScheduleConfig &config, const Group &group) const {
  double logGain = 0;
  int compared = 0;
  for (const auto *condition : relevant(group)) {
    auto defaultConfig = condition->second.find(group.defaultConfig.value_or(ScheduleConfig()));
    auto found = condition->second.find(config);
    if (defaultConfig == condition->second.end() || found == condition->second.end())
      continue;
    logGain += std::log(defaultConfig->second.microseconds / found->second.microseconds);
    ++compared;
  }
  return compared ? std::optional(std::exp(logGain / compared)) : std::nullopt;
}

bool ScheduleChooser::takeExact(ScheduleChoice &choice, const KernelKey &key, const Schedulable &schedulable,
                                const Machine &machine) const {
  auto structures = index.find({machine, schedulable.strategy});
  if (structures == index.end())
    return false;
  auto groups = structures->second.find(key.structure);
  if (groups == structures->second.end())
    return false;
  auto group = groups->second.find({key.shape, key.bounds});
  if (group == groups->second.end() || !hasThreads(group->second))
    return false;
  auto isLegal = [&](const ScheduleConfig &config) {
    std::string ignored;
    return resolve(schedulable.space, &config, ignored).has_value();
  };
  std::vector<Ranked> ranked = rank(group->second, isLegal);
  if (ranked.empty())
    return false;
  choice.provenance = Provenance::Exact;
  choice.config = legalConfig(schedulable.space, ranked.front().config);
  choice.loss = std::expm1(ranked.front().logLoss);
  choice.gain = gainOf(ranked.front().config, group->second);
  takeRecords(choice,
              {schedulable.strategy, key.structure, key.shape, key.bounds, machine, 1, {}, ranked.front().config},
              group->second);
  return true;
}

/// Returns the nearest measured shape with a configuration that did not fail for this kernel.
std::optional<ScheduleChooser::Donor> ScheduleChooser::findDonor(const std::map<Shape, Group> &groups, const Shape &own,
                                                                 const SearchSpace &space) const {
  std::set<ScheduleConfig> refused;
  if (auto group = groups.find(own); group != groups.end())
    refused = group->second.refused;
  double least = farthest;
  std::optional<Donor> nearest;
  for (const auto &[shape, group] : groups) {
    const double away = distance(shape, own, group);
    if (away > least || (nearest && away == least))
      continue;
    for (const Ranked &ranked : rank(group, anyConfig)) {
      ScheduleConfig legal = legalConfig(space, ranked.config);
      if (refused.count(legal))
        continue;
      least = away;
      nearest = {&shape, &group, ranked.config, std::move(legal)};
      break;
    }
  }
  return nearest;
}

bool ScheduleChooser::takeNearest(ScheduleChoice &choice, const KernelKey &key, const Schedulable &schedulable,
                                  const Machine &machine) const {
  auto structures = index.find({machine, schedulable.strategy});
  if (structures == index.end())
    return false;
  auto groups = structures->second.find(key.structure);
  if (groups == structures->second.end())
    return false;
  const Shape own{key.shape, key.bounds};
  const std::optional<Donor> donor = findDonor(groups->second, own, schedulable.space);
  if (!donor)
    return false;
  if (donor->measured == donor->group->defaultConfig)
    return true; // the default was best there, and depends on the shape: the choice stays this kernel's default
  choice.provenance = Provenance::Transferred;
  choice.config = donor->legal;
  const int64_t count = relevant(*donor->group).front()->first.first;
  const bool hasOtherThreads = threads != 0 && donor->group->countsThreads && count != threads;
  const bool hasOtherShape = *donor->shape != own;
  if (hasOtherShape || !hasOtherThreads)
    choice.donor = toString(donor->shape->first) + " " + toString(donor->shape->second);
  if (hasOtherThreads)
    choice.donor += llvm::formatv("{0}{1} thread{2}", hasOtherShape ? ", " : "", count, count == 1 ? "" : "s");
  takeRecords(
      choice,
      {schedulable.strategy, key.structure, donor->shape->first, donor->shape->second, machine, 1, {}, donor->measured},
      *donor->group);
  return true;
}

ScheduleChoice ScheduleChooser::choose(const KernelKey &key, const Schedulable &schedulable,
                                       llvm::StringRef isa) const {
  ScheduleChoice choice;
  choice.config = defaultConfigOf(schedulable.space);
  auto preferred = machines.find(isa.str());
  if (preferred == machines.end())
    return choice;
  for (const Machine &machine : preferred->second)
    if (takeExact(choice, key, schedulable, machine))
      return choice;
  for (const Machine &machine : preferred->second)
    if (takeNearest(choice, key, schedulable, machine))
      return choice;
  return choice;
}

} // namespace kiln
