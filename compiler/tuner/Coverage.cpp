// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Coverage.h"

#include "compiler/kernel/Workload.h"
#include "compiler/tuner/LoweredModel.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <set>

using namespace mlir;

namespace kiln {

llvm::Expected<std::vector<CoveredKernel>> coverModel(const Graph &graph, const CoverageOptions &options) {
  llvm::Expected<ScheduleChooser> chooser = loadChooser(options.tuning);
  if (!chooser)
    return chooser.takeError();
  std::vector<CoveredKernel> result;
  for (const std::string &target : options.targets) {
    auto lowered = lowerModel(graph, options.name, target, options.lowering);
    if (!lowered)
      return lowered.takeError();
    LoweredModel &model = **lowered;
    llvm::Expected<std::vector<Scenario>> scenarios = makeScenarios(*model.module, options.extents);
    if (!scenarios)
      return scenarios.takeError();
    llvm::StringMap<double> operations;
    double all = 0;
    for (const KernelUse &use : collectKernels(*model.module, model.forms, *scenarios))
      for (const Workload &workload : use.scenarios.front()) {
        double work = workload.calls * measureWork(use.kernel, workload.extents).operations;
        operations[mlir::func::FuncOp(use.kernel).getName()] += work;
        all += work;
      }
    for (func::FuncOp kernel : model.kernels())
      result.push_back({target, chooseSchedule(*chooser, *model.target, kernel),
                        all > 0 ? operations.lookup(kernel.getName()) / all : 0});
  }
  return result;
}

double measuredShare(const std::vector<CoveredKernel> &kernels) {
  double measured = 0, all = 0;
  for (const CoveredKernel &kernel : kernels) {
    all += kernel.share;
    measured += kernel.summary.choice.provenance == Provenance::Exact ? kernel.share : 0;
  }
  return all > 0 ? measured / all : 1;
}

std::string printCoverage(const std::vector<CoveredKernel> &kernels) {
  std::vector<std::array<std::string, 6>> rows{{"target", "kernel", "strategy", "shape", "of the work", "schedule"}};
  for (const CoveredKernel &kernel : kernels)
    rows.push_back({kernel.target, kernel.summary.function, kernel.summary.strategy,
                    toString(kernel.summary.key.shape) + " " + toString(kernel.summary.key.bounds),
                    fmt::format("{:.1f} %", kernel.share * 100), describeChoice(kernel.summary.choice)});
  std::array<size_t, 6> widths{};
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto &row : rows)
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {:>{}}  {}\n", row[0], widths[0], row[1], widths[1], row[2],
                        widths[2], row[3], widths[3], row[4], widths[4], row[5]);
  size_t measured =
      llvm::count_if(kernels, [](const CoveredKernel &k) { return k.summary.choice.provenance == Provenance::Exact; });
  return text + fmt::format("measured: {} of {} kernels, {:.1f} % of the work\n", measured, kernels.size(),
                            measuredShare(kernels) * 100);
}

llvm::Expected<Verification> verifyTuning(const Graph &graph, const std::string &name, const LoweringOptions &options,
                                          const TuningDatabase &database) {
  auto models = lowerMeasured(graph, name, database, options);
  if (!models)
    return models.takeError();
  using Identity = std::tuple<std::string, std::vector<int64_t>, std::vector<Bounds>>;
  std::map<std::string, std::map<Identity, Schedulable>> known; // the key is the target's name
  for (const std::unique_ptr<LoweredModel> &model : *models) {
    std::map<Identity, Schedulable> &kernels = known[model->target->info().name];
    for (func::FuncOp kernel : model->kernels()) {
      KernelKey key = keyOf(kernel);
      kernels.try_emplace({key.structure, key.shape, key.bounds}, model->target->compilerOf(kernel).describe(kernel));
    }
  }

  Verification verification;
  std::map<std::string, size_t> unused;
  std::set<std::string> unknownTargets;
  for (const auto &[of, result] : database.records())
    if (!known.count(of.machine.isa) && unknownTargets.insert(of.machine.isa).second)
      verification.warnings.push_back(fmt::format("this compiler has no target \"{}\"", of.machine.isa));
  for (const auto &[of, result] : database.records()) {
    auto target = known.find(of.machine.isa);
    const Schedulable *schedulable = nullptr;
    if (target != known.end())
      if (auto kernel = target->second.find({of.structure, of.shape, of.bounds}); kernel != target->second.end())
        schedulable = &kernel->second;
    if (!schedulable) {
      if (target != known.end())
        ++unused[fmt::format("{} {} {} {} for {}", of.strategy, of.structure, toString(of.shape), toString(of.bounds),
                             of.machine.isa)];
      verification.legal.put(of, result);
      continue;
    }
    std::string error;
    if (schedulable->strategy != of.strategy)
      error = fmt::format("the kernel's strategy is {} now", schedulable->strategy);
    else
      resolve(schedulable->space, &of.config, error);
    if (!error.empty()) {
      verification.problems.push_back(fmt::format("{}: {}", toString(of, result), error));
      continue;
    }
    verification.legal.put(of, result);
    verification.used.put(of, result);
  }
  for (const auto &[kernel, count] : unused)
    verification.warnings.push_back(
        fmt::format("the model has no kernel {} ({} {})", kernel, count, count == 1 ? "line" : "lines"));
  return verification;
}

} // namespace kiln
