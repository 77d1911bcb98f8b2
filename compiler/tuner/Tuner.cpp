// SPDX-License-Identifier: Apache-2.0
//
// 1. Lower the model as for compilation, and find the sizes at which its kernels run.
// 2. Check and measure each kernel's default, which determines its share of the model's time.
// 3. Repeatedly tune the kernel with the largest expected gain.
// 4. Measure every kernel's best configuration against its default again.
#include "compiler/tuner/Tuner.h"

#include "compiler/tuner/Gains.h"
#include "compiler/tuner/LoweredModel.h"
#include "compiler/tuner/SavedDatabase.h"
#include "compiler/tuner/SignalWatch.h"
#include "compiler/tuner/TargetsToTune.h"
#include "compiler/tuner/TimeBudget.h"

#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace kiln {

namespace {

/// Candidates per turn; each is compiled by one job, so that some CPUs are busy and none waits long.
constexpr size_t turn = 6;
/// The fraction of the budget that is reserved for confirming the best configurations.
constexpr double reserve = 0.08;

/// Shared by the targets of a run.
struct Run {
  SavedDatabase &saved;
  TuneDisplay &display;
  const SignalWatch &signals;
};

class TargetTuner {
public:
  TargetTuner(const Run &run, const TargetHere &here, std::vector<KernelToTune> kernels, int64_t rotatedBytes,
              MeasurementOptions measurements, double seconds);

  /// Returns false if interrupted, or if a measurement could not be saved.
  bool tune();

private:
  bool measureDefaults();
  bool search();
  bool confirm();
  bool goesOn();
  void handle(const MeasurementReport &report);
  void leaveOut(size_t task);
  void estimate() { estimateGains(state, kernels, isLeftOut); }

  Run run;
  TimeBudget budget;
  std::vector<KernelToTune> kernels;
  std::vector<std::unique_ptr<Task>> tasks; // one per kernel
  std::vector<bool> isLeftOut;
  TuneState state;
};

std::vector<std::vector<int64_t>> extentsOf(const KernelToTune &kernel) {
  std::vector<std::vector<int64_t>> extents;
  for (const Workload &workload : kernel.workloads)
    extents.push_back(workload.extents);
  return extents;
}

TargetTuner::TargetTuner(const Run &run, const TargetHere &here, std::vector<KernelToTune> toTune, int64_t rotatedBytes,
                         MeasurementOptions measurements, double seconds)
    : run(run), budget(seconds), kernels(std::move(toTune)), isLeftOut(kernels.size(), false) {
  measurements.goesOn = [this] { return goesOn(); };
  for (const KernelToTune &kernel : kernels) {
    tasks.push_back(std::make_unique<Task>(*here.target, kernel.use, extentsOf(kernel), here.machine, rotatedBytes,
                                           measurements, run.saved.database(),
                                           [this](const MeasurementReport &report) { handle(report); }));
    state.tasks.push_back(&tasks.back()->state());
  }
  state.target = here.target->name().str();
  state.threads = measurements.compare.threads;
  state.budget = seconds;
  state.shares.assign(tasks.size(), 0);
  state.gains.assign(tasks.size(), 0);
}

/// Polled while something is compiled or measured.
bool TargetTuner::goesOn() {
  state.seconds = budget.elapsed();
  run.display.update(state);
  return !run.signals.isAskedToStop() && run.saved.problem().empty();
}

/// Saves before it displays.
void TargetTuner::handle(const MeasurementReport &report) {
  state.seconds = budget.elapsed();
  estimate();
  if (run.saved.save())
    run.display.measurement(state, report);
}

/// Skips a task whose default is wrong or cannot be measured, since candidates cannot be compared with it.
void TargetTuner::leaveOut(size_t task) {
  run.display.note(fmt::format("leaving out {}: {}", state.tasks[task]->name, tasks[task]->problem()));
  isLeftOut[task] = true;
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
    else if (!tasks[i]->unchecked().empty())
      run.display.note(fmt::format("{}: the default schedule's results are not checked: {}", state.tasks[i]->name,
                                   tasks[i]->unchecked()));
    estimate();
  }
  return true;
}

bool TargetTuner::search() {
  auto isSpent = [&] { return budget.isSpent(1 - reserve); };
  std::optional<size_t> last;
  while (!isSpent()) {
    estimate();
    size_t next = std::max_element(state.gains.begin(), state.gains.end()) - state.gains.begin();
    if (state.gains[next] < leastGain)
      break;
    if (last && last != next)
      tasks[*last]->rest();
    last = state.active = next;
    Task::Step step = tasks[next]->advance(turn, isSpent);
    if (step == Task::Step::Interrupted)
      return false;
    if (step == Task::Step::Broken)
      leaveOut(next);
  }
  if (last)
    tasks[*last]->rest();
  return true;
}

/// Confirms the largest kernels first, while there is time.
bool TargetTuner::confirm() {
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](size_t a, size_t b) { return state.shares[a] > state.shares[b]; });
  for (size_t i : order) {
    if (isLeftOut[i] || budget.isSpent(1))
      continue;
    state.active = i;
    Task::Step step = tasks[i]->finish();
    tasks[i]->rest();
    if (step == Task::Step::Interrupted)
      return false;
  }
  return true;
}

bool TargetTuner::tune() {
  bool isComplete = measureDefaults() && search() && confirm();
  state.seconds = budget.elapsed();
  estimate();
  run.display.summary(state, run.saved.path(), !isComplete);
  return isComplete;
}

} // namespace

static std::vector<KernelToTune> takePart(std::vector<KernelToTune> kernels, const Part &part, TuneDisplay &display) {
  const size_t all = kernels.size();
  std::vector<KernelToTune> taken = takePart(std::move(kernels), part);
  display.note(fmt::format("part {} has {} of {} kernels", toString(part), taken.size(), all));
  return taken;
}

int tuneModel(const Graph &graph, const TuneOptions &options, llvm::raw_ostream &errors) {
  auto fail = [&](const std::string &message) {
    errors << "error: " << message << "\n";
    return 1;
  };
  llvm::Expected<SavedDatabase> saved = SavedDatabase::open(options.file);
  if (!saved)
    return fail(llvm::toString(saved.takeError()));
  std::unique_ptr<TuneDisplay> display = makeDisplay(options.form);
  auto note = [&](const std::string &text) { display->note(text); };
  auto targets = findTargets(options.targets, options.runner, note);
  if (targets.empty())
    return fail(fmt::format("{} runs none of the targets {}; name one with --target",
                            options.runner.script.empty() ? "this machine" : "\"" + options.runner.script + "\"",
                            fmt::join(options.targets, ", ")));
  const unsigned cpus = targets.front().threads;
  if (options.threads > cpus)
    return fail(fmt::format("--threads: too many; expected at most the {} CPUs that {}, got {}", cpus,
                            options.runner.script.empty() ? "this process may use" : "the other machine has",
                            options.threads));
  SignalWatch signals;
  std::vector<std::string> names;
  bool isAny = false;
  for (const TargetHere &here : targets) {
    auto model = lowerModel(graph, options.name, here.target->name(), options.lowering);
    if (!model)
      return fail(llvm::toString(model.takeError()));
    mlir::ModuleOp module = *(*model)->module;
    auto kernels = findKernels(module, (*model)->forms, options.extents, options.kernels, names);
    if (!kernels)
      return fail(llvm::toString(kernels.takeError()));
    isAny |= !kernels->empty();
    if (!options.part.isWhole())
      *kernels = takePart(std::move(*kernels), options.part, *display);
    if (kernels->empty())
      continue;
    const int64_t rotated = rotatedWeightBytes(module, here.machine, *here.target);
    // A GPU's measurements do not depend on the number of CPU threads.
    const unsigned threads = here.machine.isGpu() ? 1 : options.threads ? options.threads : here.threads;
    TargetTuner tuner({*saved, *display, signals}, here, std::move(*kernels), rotated,
                      makeMeasurementOptions(threads, options.runner), options.budget / double(targets.size()));
    bool isComplete = tuner.tune();
    if (!saved->problem().empty())
      return fail(saved->problem());
    if (!isComplete)
      return 130;
  }
  if (!isAny)
    return fail(llvm::toString(noKernelToTune(options.kernels, names)));
  if (!saved->save()) // a part without a kernel has a file, too, so that merging finds all files
    return fail(saved->problem());
  return 0;
}

} // namespace kiln
