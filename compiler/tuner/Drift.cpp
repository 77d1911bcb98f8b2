// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Drift.h"

#include "compiler/tuner/LoweredModel.h"
#include "compiler/tuner/TargetsToTune.h"

namespace kiln {

llvm::Error measureDrift(const Graph &graph, const std::string &name, const LoweringOptions &options,
                         const TuningDatabase &database, const RunnerOptions &runner,
                         llvm::function_ref<void(const KernelDrift &)> report) {
  TuningDatabase copy = database; // a task may write to its database
  std::string words;
  size_t reported = 0;
  for (const Target *of : allTargets()) {
    const std::string &isa = of->info().name;
    if (llvm::none_of(database.records(), [&](const auto &record) { return record.first.machine.isa == isa; }))
      continue;
    const std::vector<TargetHere> found =
        findTargets({isa}, runner, [&](const std::string &note) { words += (words.empty() ? "" : "; ") + note; });
    if (found.empty())
      continue;
    const Machine &machine = found.front().machine;
    if (llvm::none_of(database.records(), [&](const auto &record) { return record.first.machine == machine; }))
      continue;
    auto model = lowerModel(graph, name, isa, options);
    if (!model)
      return model.takeError();
    auto scenarios = makeScenarios(*(*model)->module, {});
    if (!scenarios)
      return scenarios.takeError();
    const Target &target = *(*model)->target;
    const int64_t rotated = rotatedWeightBytes(*(*model)->module, machine, target);
    for (KernelUse &use : collectKernels(*(*model)->module, (*model)->forms, *scenarios)) {
      const KernelKey key = keyOf(use.kernel);
      std::set<std::pair<int64_t, std::vector<int64_t>>> conditions;
      for (const auto &[of, result] : database.records())
        if (of.machine == machine && of.structure == key.structure && of.shape == key.shape &&
            of.bounds == key.bounds && size_t(of.threads) <= found.front().threads)
          conditions.insert({of.threads, of.extents});
      for (const auto &[threads, extents] : conditions) {
        Task task(target, use, {extents}, machine, rotated, makeMeasurementOptions(unsigned(threads), runner), copy,
                  [](const MeasurementReport &) {});
        if (std::optional<Task::Drift> drift = task.measureDrift()) {
          report({isa, use.kernel.getName().str(), threads, extents, *drift});
          ++reported;
        }
      }
    }
  }
  if (reported == 0 && !words.empty())
    return llvm::createStringError("nothing was measured: " + words);
  return llvm::Error::success();
}

} // namespace kiln
