// SPDX-License-Identifier: Apache-2.0
//
// 1. Lower the model as compiling does, and find out at which extents its kernels run.
// 2. Measure each kernel's default, which says what share of the model's time it takes.
// 3. Give turns to the kernel that promises the most: its share of the time, times the room to what the machine
//    allows, less for every candidate since the last better one.
// 4. Measure every kernel's best once more beside its default.
#include "compiler/tuner/Tuner.h"

#include "compiler/tuner/LoweredModel.h"
#include "runtime/src/internal.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <unistd.h>

namespace kiln {

using namespace mlir;
using Clock = std::chrono::steady_clock;

static volatile std::sig_atomic_t stopRequested = 0;

namespace {

/// While it lives, the signals that ask a program to end are only noted.
class SignalWatch {
public:
  SignalWatch() {
    stopRequested = 0;
    struct sigaction note = {};
    note.sa_handler = [](int) { stopRequested = 1; };
    for (size_t i = 0; i < std::size(signals); ++i)
      sigaction(signals[i], &note, &before[i]);
  }
  ~SignalWatch() {
    for (size_t i = 0; i < std::size(signals); ++i)
      sigaction(signals[i], &before[i], nullptr);
  }

private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before[std::size(signals)];
};

/// The candidates of a turn; each is compiled by one job, so that this keeps some CPUs busy and others not for long.
constexpr size_t turn = 6;
/// What a kernel must promise of the model's time to get another turn.
constexpr double leastGain = 0.0005;
/// No schedule reaches the limit itself.
constexpr double reachable = 0.97;
/// After so many candidates without a better one, half as much is expected as before.
constexpr double patience = 8;
/// The part of the budget that measuring the best ones again may take.
constexpr double reserve = 0.08;
/// A kernel that no scenario calls, such as a form for few rows, counts as this share of the model.
constexpr double leastShare = 0.02;

class TargetTuner {
public:
  TargetTuner(const TuneOptions &options, const Target &target, TuningDatabase &database, TuneDisplay &display,
              double budget)
      : options(options), target(target), database(database), display(display),
        trials(makeTrialOptions(options.threads)) {
    state.target = target.name().str();
    state.threads = trials.compare.threads;
    state.budget = budget;
    trials.goesOn = [this] {
      state.seconds = secondsOf(Clock::now() - begin);
      if (!state.tasks.empty())
        this->display.update(state);
      return !stopRequested;
    };
  }

  /// False if interrupted; `problem` says what went wrong otherwise.
  bool run(ModuleOp module, const RowVariants &forms, std::string &problem);

private:
  static double secondsOf(Clock::duration span) { return std::chrono::duration<double>(span).count(); }
  bool findTasks(ModuleOp module, const RowVariants &forms, std::string &problem);
  bool measureDefaults();
  void estimate();
  bool search();
  bool confirm();
  bool spent(double part) const { return state.seconds > state.budget * part; }
  void handle(const TrialReport &report);
  void leaveOut(size_t task);

  const TuneOptions &options;
  const Target &target;
  TuningDatabase &database;
  TuneDisplay &display;
  TrialOptions trials;
  TuneState state;
  Clock::time_point begin = Clock::now();
  std::vector<std::vector<Workload>> calls; // of each task, in all scenarios together
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<bool> isLeftOut;
  std::string saveProblem;
};

/// Extents at which a kernel is measured that no scenario calls.
std::vector<int64_t> upperBounds(func::FuncOp kernel) {
  std::vector<int64_t> extents;
  for (Bounds bounds : keyOf(kernel).bounds)
    extents.push_back(bounds.max);
  return extents;
}

bool TargetTuner::findTasks(ModuleOp module, const RowVariants &forms, std::string &problem) {
  llvm::Expected<std::vector<Scenario>> scenarios = makeScenarios(module, options.extents);
  if (!scenarios) {
    problem = llvm::toString(scenarios.takeError());
    return false;
  }
  std::string wrong;
  llvm::Regex wanted(options.kernels.empty() ? "." : options.kernels);
  if (!wanted.isValid(wrong)) {
    problem = fmt::format("--kernel requires a regular expression, got \"{}\": {}", options.kernels, wrong);
    return false;
  }
  Machine machine = detectMachine(target.name());
  int64_t rotated = rotatedWeightBytes(module, machine, target);
  for (KernelUse &use : collectKernels(module, forms, *scenarios)) {
    if (!wanted.match(use.kernel.getName()))
      continue;
    std::vector<Workload> all;
    for (const std::vector<Workload> &scenario : use.scenarios)
      for (const Workload &workload : scenario) {
        auto same = llvm::find_if(all, [&](const Workload &other) { return other.extents == workload.extents; });
        if (same == all.end())
          all.push_back({workload.extents, workload.calls});
        else
          same->calls += workload.calls;
      }
    if (all.empty() && !options.extents.empty())
      continue; // the user says which calls matter
    if (all.empty())
      all.push_back({upperBounds(use.kernel), 0});
    llvm::sort(all, [](const Workload &a, const Workload &b) { return a.extents > b.extents; });
    std::vector<std::vector<int64_t>> extents;
    for (const Workload &workload : all)
      extents.push_back(workload.extents);
    calls.push_back(std::move(all));
    tasks.push_back(std::make_unique<Task>(target, use, extents, machine, rotated, trials, database,
                                           [this](const TrialReport &report) { handle(report); }));
  }
  if (tasks.empty())
    problem = options.kernels.empty() ? "the model has no kernel"
                                      : fmt::format("no kernel has a name that matches \"{}\"", options.kernels);
  for (const std::unique_ptr<Task> &task : tasks)
    state.tasks.push_back(&task->state());
  state.shares.assign(tasks.size(), 0);
  state.gains.assign(tasks.size(), 0);
  isLeftOut.assign(tasks.size(), false);
  return !tasks.empty();
}

/// First saves, then tells.
void TargetTuner::handle(const TrialReport &report) {
  state.seconds = secondsOf(Clock::now() - begin);
  estimate();
  if (llvm::Error error = database.save(options.file)) {
    saveProblem = llvm::toString(std::move(error));
    stopRequested = 1;
    return;
  }
  display.trial(state, report);
}

/// Its default cannot be compiled or measured, so there is nothing to compare with.
void TargetTuner::leaveOut(size_t task) {
  display.note(fmt::format("leaving out {}: {}", state.tasks[task]->name, tasks[task]->problem()));
  isLeftOut[task] = true;
}

void TargetTuner::estimate() {
  double whole = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    state.shares[i] = 0;
    for (auto [workload, seconds] : llvm::zip(calls[i], state.tasks[i]->defaultTimes))
      state.shares[i] += workload.calls * seconds;
    whole += state.shares[i];
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TaskState &task = *state.tasks[i];
    state.shares[i] = whole > 0 && state.shares[i] > 0 ? state.shares[i] / whole : leastShare;
    double room = task.limit == Limit::Unknown ? 0.3 : std::max(0.0, 1 - task.limitFraction / reachable);
    state.gains[i] = task.isDone || isLeftOut[i] || task.defaultSeconds == 0
                         ? 0
                         : state.shares[i] * room * 0.5 * std::exp2(-double(task.sinceBest) / patience);
  }
}

bool TargetTuner::measureDefaults() {
  for (size_t i = 0; i < tasks.size(); ++i) {
    state.active = i;
    Task::Step step = tasks[i]->start();
    tasks[i]->rest();
    if (step == Task::Step::Interrupted)
      return false;
    if (step == Task::Step::Broken)
      leaveOut(i);
    estimate();
  }
  return true;
}

bool TargetTuner::search() {
  std::optional<size_t> last;
  while (!spent(1 - reserve)) {
    estimate();
    size_t next = std::max_element(state.gains.begin(), state.gains.end()) - state.gains.begin();
    if (state.gains[next] < leastGain)
      break;
    if (last && last != next)
      tasks[*last]->rest();
    last = state.active = next;
    Task::Step step = tasks[next]->advance(turn, [&] { return spent(1 - reserve); });
    if (step == Task::Step::Interrupted)
      return false;
    if (step == Task::Step::Broken)
      leaveOut(next);
  }
  if (last)
    tasks[*last]->rest();
  return true;
}

/// The largest first, while there is time.
bool TargetTuner::confirm() {
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](size_t a, size_t b) { return state.shares[a] > state.shares[b]; });
  for (size_t i : order) {
    if (isLeftOut[i] || spent(1))
      continue;
    state.active = i;
    Task::Step step = tasks[i]->finish();
    tasks[i]->rest();
    if (step == Task::Step::Interrupted)
      return false;
  }
  return true;
}

bool TargetTuner::run(ModuleOp module, const RowVariants &forms, std::string &problem) {
  if (!findTasks(module, forms, problem))
    return true;
  bool isComplete = measureDefaults() && search() && confirm();
  if (!saveProblem.empty())
    problem = saveProblem;
  state.seconds = secondsOf(Clock::now() - begin);
  estimate();
  display.summary(state, options.file, !isComplete);
  return isComplete;
}

/// The targets to tune that this CPU can run.
std::vector<std::unique_ptr<Target>> findTargets(const TuneOptions &options, TuneDisplay &display) {
  kiln_cpu_t cpu = kiln_cpu_detect();
  uint32_t best = kiln_cpu_best_isa(&cpu);
  std::vector<std::unique_ptr<Target>> targets;
  std::vector<std::string> names = options.targets.empty() ? cpuTargetNames() : options.targets;
  for (const std::string &name : names) {
    std::unique_ptr<Target> target = createCpuTarget(name);
    if (!options.targets.empty() && target->isa() > best)
      display.note(fmt::format("leaving out {}: this CPU cannot run it", name));
    else if (target->isa() <= best)
      targets.push_back(std::move(target));
  }
  if (options.targets.empty() && !targets.empty()) {
    auto fastest = llvm::max_element(targets, [](const auto &a, const auto &b) { return a->isa() < b->isa(); });
    std::swap(targets.front(), *fastest);
    targets.resize(1);
  }
  return targets;
}

} // namespace

int tuneModel(const Graph &graph, const TuneOptions &options, llvm::raw_ostream &errors) {
  auto fail = [&](const std::string &message) {
    errors << "error: " << message << "\n";
    return 1;
  };
  TuningDatabase database;
  if (llvm::sys::fs::exists(options.file)) {
    llvm::Expected<TuningDatabase> loaded = TuningDatabase::load(options.file);
    if (!loaded)
      return fail(llvm::toString(loaded.takeError()));
    database = std::move(*loaded);
  }
  if (size_t cpus = availableCpus().size(); options.threads > cpus)
    return fail(
        fmt::format("--threads requires at most the {} CPUs that this process may use, got {}", cpus, options.threads));

  std::unique_ptr<TuneDisplay> display = makeDisplay(options.form);
  std::vector<std::unique_ptr<Target>> targets = findTargets(options, *display);
  if (targets.empty())
    return fail("this CPU runs none of the targets");
  SignalWatch signals;
  for (const std::unique_ptr<Target> &target : targets) {
    auto model = lowerModel(graph, options.name, target->name(), options.lowering);
    if (!model)
      return fail(llvm::toString(model.takeError()));
    std::string problem;
    TargetTuner tuner(options, *target, database, *display, options.budget / double(targets.size()));
    bool isComplete = tuner.run(*(*model)->module, (*model)->forms, problem);
    if (!problem.empty())
      return fail(problem);
    if (!isComplete)
      return 130;
  }
  return 0;
}

} // namespace kiln
