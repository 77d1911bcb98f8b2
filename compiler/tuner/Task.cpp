// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Task.h"

#include "compiler/tuner/CostModel.h"

#include <cmath>
#include <fmt/format.h>

namespace kiln {

/// Below the first ratio a candidate is measured again; below the second one it becomes the new incumbent.
static constexpr double promising = 0.99, better = 0.995;
/// The number of best candidates that are confirmed against the default: the best of many is often a lucky measurement.
static constexpr size_t mostConfirmed = 4;
/// A candidate hangs if measuring it takes as long as this many calls of the default, and at least the limit of the
/// options.
static constexpr double mostCalls = 150;
/// The limit while the time of a call is still unknown.
static constexpr double firstSeconds = 120;

/// Returns the strategy's search space without configurations that exceed this machine's resources and without
/// parameters that have no effect there. The default stays legal: if it does not fit, measuring it fails.
static Schedulable describeFor(const KernelCompiler &compiler, mlir::func::FuncOp kernel, const Machine &machine) {
  Schedulable schedulable = compiler.describe(kernel);
  const ScheduleConfig defaultConfig = defaultConfigOf(schedulable.space);
  for (TuningRule &rule : compiler.limitsOf(kernel, machine))
    if (rule.holds(defaultConfig))
      schedulable.space.rules.push_back(std::move(rule));
  const std::vector<std::string> idle = compiler.idleParameters(kernel, machine);
  for (TuningParameter &parameter : schedulable.space)
    if (llvm::is_contained(idle, parameter.key))
      parameter.values = {parameter.defaultValue};
  schedulable.operationShare /= compiler.multiplyRate(kernel, machine);
  return schedulable;
}

Task::Task(const Target &target, const KernelUse &use, std::vector<std::vector<int64_t>> extents,
           const Machine &machine, int64_t rotatedBytes, const MeasurementOptions &options, TuningDatabase &database,
           std::function<void(const MeasurementReport &)> report)
    : target(target), use(use), workloads(std::move(extents)), machine(machine), rotatedBytes(rotatedBytes),
      options(options), database(database), report(std::move(report)), key(keyOf(use.kernel)),
      schedulable(describeFor(target.compilerOf(use.kernel), use.kernel, machine)),
      defaultConfig(defaultConfigOf(schedulable.space)), incumbent(defaultConfig),
      search(schedulable.space,
             makeCostModel(schedulable.strategy, schedulable.space, productShape(use.kernel, workloads.front()),
                           target.machine()),
             /*seed=*/1) {
  for (const std::vector<int64_t> &workload : workloads) {
    work.push_back(measureWork(this->use.kernel, workload));
    work.back().operations *= schedulable.operationShare;
  }
  current.name = this->use.kernel.getName().str();
  current.strategy = schedulable.strategy;
  current.extents = workloads;
  current.size = search.size();
  readRecords();
}

TuningCase Task::caseOf(const ScheduleConfig &config, size_t workload) const {
  return {schedulable.strategy,    key.structure,       key.shape, key.bounds, machine,
          options.compare.threads, workloads[workload], config};
}

std::optional<Task::Times> Task::recordedTimes(const ScheduleConfig &config) const {
  Times times;
  for (size_t i = 0; i < workloads.size(); ++i) {
    auto found = database.records().find(caseOf(config, i));
    if (found == database.records().end() || found->second.outcome != Outcome::Measured)
      return std::nullopt;
    times.push_back(found->second.microseconds);
  }
  return times;
}

/// Returns the geometric mean over the workloads of the time relative to the default's.
double Task::costOf(const Times &times) const {
  double sum = 0;
  for (auto [time, base] : llvm::zip(times, timesOfDefault))
    sum += std::log(time / base);
  return std::exp(sum / double(times.size()));
}

/// Returns the geometric mean over the workloads.
static double meanRatio(const std::vector<Comparison> &comparisons) {
  double sum = 0;
  for (const Comparison &comparison : comparisons)
    sum += std::log(comparison.ratio);
  return std::exp(sum / double(comparisons.size()));
}

static std::string describe(const FailedMeasurement &failure) {
  return toString(failure.outcome).str() + ": " + failure.words;
}

void Task::forEachRecord(llvm::function_ref<void(const ScheduleConfig &, const std::optional<Times> &)> visit) const {
  TuningCase first = caseOf({}, 0);
  for (auto at = database.records().lower_bound(first); at != database.records().end(); ++at) {
    TuningCase of = at->first;
    ScheduleConfig config = std::exchange(of.config, {});
    if (of != first)
      break;
    std::string error;
    if (!resolve(schedulable.space, &config, error))
      continue; // recorded for another version of the search space
    std::optional<Times> times = recordedTimes(config);
    if (times || at->second.outcome != Outcome::Measured) // else a workload is missing
      visit(config, times);
  }
}

void Task::readRecords() {
  std::optional<Times> times = recordedTimes(defaultConfig);
  if (!times)
    return;
  timesOfDefault = incumbentTimes = *times;
  forEachRecord([&](const ScheduleConfig &config, const std::optional<Times> &measured) {
    search.record(config, measured ? std::optional(costOf(*measured)) : std::nullopt);
    current.failed += !measured;
    if (measured && costOf(*measured) < costOf(incumbentTimes))
      incumbent = config, incumbentTimes = *measured;
  });
}

void Task::put(const ScheduleConfig &config, const std::vector<Comparison> &comparisons, const Times &base) {
  for (auto [i, comparison] : llvm::enumerate(comparisons)) {
    TuningResult result;
    result.microseconds = base[i] * comparison.ratio;
    result.samples = comparison.pairs;
    result.isDefault = config == defaultConfig;
    if (double least = leastSeconds(work[i], rates[i]); least > 0) {
      result.limit = isBoundByOperations(work[i], rates[i]) ? Limit::Fma : Limit::Bytes;
      result.limitFraction = least * 1e6 / result.microseconds;
    }
    database.put(caseOf(config, i), result);
  }
}

void Task::putFailure(const ScheduleConfig &config, const FailedMeasurement &failure) {
  MeasurementReport measurement;
  measurement.config = config;
  measurement.outcome = failure.outcome;
  measurement.words = failure.words;
  TuningResult result;
  result.outcome = measurement.outcome;
  for (size_t i = 0; i < workloads.size(); ++i)
    database.put(caseOf(config, i), result);
  search.record(config, std::nullopt);
  ++current.failed;
  update();
  report(measurement);
}

void Task::update() {
  auto total = [](const Times &times) {
    double sum = 0;
    for (double time : times)
      sum += time * 1e-6;
    return sum;
  };
  current.defaultTimes.clear();
  for (double time : timesOfDefault)
    current.defaultTimes.push_back(time * 1e-6);
  current.defaultSeconds = total(timesOfDefault);
  current.bestSeconds = total(incumbentTimes);
  current.best = incumbent;
  current.measured = search.measured();
  current.sinceBest = search.sinceBest();
  double least = 0, bounded = 0;
  for (size_t i = 0; i < rates.size(); ++i) {
    double seconds = leastSeconds(work[i], rates[i]);
    least += seconds;
    bounded += isBoundByOperations(work[i], rates[i]) ? seconds : 0;
  }
  if (least > 0 && current.bestSeconds > 0) {
    current.limitFraction = least / current.bestSeconds;
    current.limit = bounded * 2 >= least ? Limit::Fma : Limit::Bytes;
  }
}

KernelMeasurements &Task::running() {
  if (!measurements)
    measurements = std::make_unique<KernelMeasurements>(target, use, workloads, rotatedBytes, options);
  double calls = 0;
  for (double time : timesOfDefault)
    calls += time * 1e-6 * mostCalls;
  measurements->limitMeasuring(timesOfDefault.empty() ? firstSeconds : std::max(options.limits.measureSeconds, calls));
  return *measurements;
}

Task::Step Task::compileOne(const ScheduleConfig &config, KernelCode &code) {
  auto codes = running().compile(config);
  if (!codes)
    return Step::Interrupted;
  if (auto *failure = std::get_if<FailedMeasurement>(&codes->front())) {
    words = fmt::format("schedule \"{}\" of {}: {}", toString(config), current.name, describe(*failure));
    return Step::Broken;
  }
  code = std::get<KernelCode>(std::move(codes->front()));
  return Step::Went;
}

Task::Step Task::start() {
  std::optional<std::vector<Rates>> probed = running().probe();
  if (!probed)
    return Step::Interrupted;
  rates = *probed;
  if (timesOfDefault.empty())
    if (Step measured = measureDefault(); measured != Step::Went)
      return measured;
  update();
  return Step::Went;
}

/// Candidates are compared with the default, so its results must be correct.
Task::Step Task::checkDefault(const KernelCode &code) {
  auto result = running().check(code);
  if (!result)
    return Step::Interrupted;
  if (auto *failure = std::get_if<FailedMeasurement>(&*result)) {
    words = failure->outcome == Outcome::Wrong
                ? fmt::format("the default schedule of {} {}", current.name, failure->words)
                : fmt::format("the default schedule of {}: {}", current.name, describe(*failure));
    return Step::Broken;
  }
  lacking = std::get<std::string>(*result);
  return Step::Went;
}

Task::Step Task::measureDefault() {
  KernelCode code;
  if (Step compiled = compileOne(defaultConfig, code); compiled != Step::Went)
    return compiled;
  if (Step checked = checkDefault(code); checked != Step::Went)
    return checked;
  auto result = running().measure(code, code, /*isFinal=*/true);
  if (!result)
    return Step::Interrupted;
  if (auto *failure = std::get_if<FailedMeasurement>(&*result)) {
    words = fmt::format("the default schedule of {}: {}", current.name, describe(*failure));
    return Step::Broken;
  }
  auto &comparisons = std::get<std::vector<Comparison>>(*result);
  Times base;
  for (Comparison &comparison : comparisons) {
    base.push_back(comparison.baseSeconds * 1e6);
    comparison.ratio = 1;
  }
  put(defaultConfig, comparisons, base);
  readRecords(); // with other records at these sizes
  if (incumbent == defaultConfig)
    incumbentCode = std::move(code);
  update();
  report({defaultConfig, Outcome::Measured, "", timesOfDefault, 1, incumbent == defaultConfig, false});
  return Step::Went;
}

/// Compiles the incumbent if necessary; one that another version recorded may not compile any more.
Task::Step Task::prepareIncumbent() {
  if (!incumbentCode.object.empty())
    return Step::Went;
  Step compiled = compileOne(incumbent, incumbentCode);
  if (compiled != Step::Broken || incumbent == defaultConfig)
    return compiled;
  incumbent = defaultConfig, incumbentTimes = timesOfDefault;
  return compileOne(incumbent, incumbentCode);
}

Task::Step Task::tryCandidate(const ScheduleConfig &config, const KernelCode &code) {
  auto result = running().measure(incumbentCode, code);
  auto cost = [&] { return meanRatio(std::get<std::vector<Comparison>>(*result)); };
  // A low first measurement is biased by selection; a second one is not.
  if (result && std::holds_alternative<std::vector<Comparison>>(*result) && cost() < promising)
    result = running().measure(incumbentCode, code, /*isFinal=*/true);
  if (!result)
    return Step::Interrupted;
  if (auto *failure = std::get_if<FailedMeasurement>(&*result)) {
    putFailure(config, *failure);
    return Step::Went;
  }
  bool isBest = cost() < better;
  put(config, std::get<std::vector<Comparison>>(*result), incumbentTimes);
  Times times = *recordedTimes(config);
  search.record(config, costOf(times));
  if (isBest)
    incumbent = config, incumbentTimes = times, incumbentCode = code;
  update();
  report({config, Outcome::Measured, "", times, costOf(times), isBest, false});
  return Step::Went;
}

Task::Step Task::advance(size_t count, llvm::function_ref<bool()> isSpent) {
  std::vector<ScheduleConfig> configs = search.propose(count);
  if (configs.empty()) {
    current.isDone = true;
    return Step::Went;
  }
  if (Step prepared = prepareIncumbent(); prepared != Step::Went)
    return prepared;
  auto codes = running().compile(configs);
  if (!codes)
    return Step::Interrupted;
  for (auto [config, code] : llvm::zip(configs, *codes)) {
    if (isSpent())
      break;
    if (auto *failure = std::get_if<FailedMeasurement>(&code)) {
      putFailure(config, *failure);
    } else if (Step step = tryCandidate(config, std::get<KernelCode>(code)); step != Step::Went) {
      return step;
    }
  }
  return Step::Went;
}

/// Returns the recorded configuration of least cost.
ScheduleConfig Task::bestRecorded() const {
  ScheduleConfig best = defaultConfig;
  double least = 1;
  forEachRecord([&](const ScheduleConfig &config, const std::optional<Times> &times) {
    if (times && costOf(*times) < least)
      best = config, least = costOf(*times);
  });
  return best;
}

Task::Step Task::finish() {
  KernelCode defaultCode;
  std::set<ScheduleConfig> confirmed{defaultConfig};
  ScheduleConfig best = bestRecorded();
  for (size_t round = 0; round < mostConfirmed && !confirmed.count(best); ++round, best = bestRecorded()) {
    if (defaultCode.object.empty())
      if (Step compiled = compileOne(defaultConfig, defaultCode); compiled != Step::Went)
        return compiled;
    confirmed.insert(best);
    if (incumbent != best || incumbentCode.object.empty())
      if (Step compiled = compileOne(best, incumbentCode); compiled != Step::Went)
        return compiled;
    auto result = running().measure(defaultCode, incumbentCode, /*isFinal=*/true);
    if (!result)
      return Step::Interrupted;
    incumbent = best;
    if (auto *failure = std::get_if<FailedMeasurement>(&*result)) {
      incumbent = defaultConfig;
      putFailure(best, *failure);
      continue;
    }
    put(best, std::get<std::vector<Comparison>>(*result), timesOfDefault);
    Times times = *recordedTimes(best);
    incumbentTimes = times;
    update();
    report({best, Outcome::Measured, "", times, costOf(times), false, true});
  }
  if (incumbent != best)
    incumbentCode = {};
  incumbent = best;
  incumbentTimes = *recordedTimes(best);
  update();
  return Step::Went;
}

std::optional<Task::Drift> Task::measureDrift() {
  if (timesOfDefault.empty())
    return std::nullopt;
  Drift drift;
  drift.best = bestRecorded();
  if (drift.best == defaultConfig)
    return drift;
  drift.recorded = costOf(*recordedTimes(drift.best));
  auto codes = running().compile({defaultConfig, drift.best});
  if (!codes)
    return std::nullopt;
  for (const auto &code : *codes)
    if (auto *failure = std::get_if<FailedMeasurement>(&code)) {
      drift.failure = describe(*failure);
      return drift;
    }
  auto result =
      running().measure(std::get<KernelCode>((*codes)[0]), std::get<KernelCode>((*codes)[1]), /*isFinal=*/true);
  if (!result)
    return std::nullopt;
  if (auto *failure = std::get_if<FailedMeasurement>(&*result))
    drift.failure = describe(*failure);
  else
    drift.now = meanRatio(std::get<std::vector<Comparison>>(*result));
  return drift;
}

} // namespace kiln
