// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/KernelsToTune.h"

#include "compiler/dialect/NearestNames.h"
#include "compiler/kernel/KernelKey.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Regex.h"
#include <fmt/format.h>

namespace kiln {

using namespace mlir;

static std::vector<int64_t> upperBounds(func::FuncOp kernel) {
  std::vector<int64_t> extents;
  for (Bounds bounds : keyOf(kernel).bounds)
    extents.push_back(bounds.max);
  return extents;
}

static std::vector<Workload> joinScenarios(const KernelUse &use) {
  std::vector<Workload> all;
  for (const std::vector<Workload> &scenario : use.scenarios)
    for (const Workload &workload : scenario) {
      auto same = llvm::find_if(all, [&](const Workload &other) { return other.extents == workload.extents; });
      if (same == all.end())
        all.push_back(workload);
      else
        same->calls += workload.calls;
    }
  llvm::sort(all, [](const Workload &a, const Workload &b) { return a.extents > b.extents; });
  return all;
}

llvm::Expected<std::vector<KernelToTune>> findKernels(ModuleOp module, const ShapeVariants &forms,
                                                      const GivenExtents &extents, const std::string &pattern,
                                                      std::vector<std::string> &names) {
  llvm::Expected<std::vector<Scenario>> scenarios = makeScenarios(module, extents);
  if (!scenarios)
    return scenarios.takeError();
  std::string wrong;
  llvm::Regex wanted(pattern.empty() ? "." : pattern);
  if (!wanted.isValid(wrong))
    return llvm::createStringError(
        fmt::format("--kernel: wrong pattern; expected a regular expression, got \"{}\": {}", pattern, wrong));
  std::vector<KernelToTune> kernels;
  for (KernelUse &use : collectKernels(module, forms, *scenarios)) {
    names.push_back(use.kernel.getName().str());
    if (!wanted.match(names.back()))
      continue;
    std::vector<Workload> workloads = joinScenarios(use);
    if (workloads.empty() && extents.empty())
      workloads.push_back({upperBounds(use.kernel), 0});
    if (!workloads.empty())
      kernels.push_back({std::move(use), std::move(workloads)});
  }
  return kernels;
}

llvm::Error noKernelToTune(const std::string &pattern, llvm::ArrayRef<std::string> names) {
  llvm::Regex wanted(pattern.empty() ? "." : pattern);
  if (names.empty())
    return llvm::createStringError("the model has no kernel");
  if (llvm::any_of(names, [&](const std::string &name) { return wanted.match(name); }))
    return llvm::createStringError("no kernel is called at these extents");
  return llvm::createStringError(
      fmt::format("no kernel has a name that matches \"{}\"{}", pattern, nearestNamesOfRegex(pattern, names)));
}

} // namespace kiln
