// SPDX-License-Identifier: Apache-2.0
//
// Whether a tuning file still tells the truth on this machine: the best recorded point of each kernel beside the
// default, measured once more.
#pragma once

#include "compiler/emit/Lower.h"
#include "compiler/tuner/Task.h"
#include "kiln/graph.h"

namespace kiln {

/// A kernel at one condition of the file.
struct KernelDrift {
  std::string target, kernel;
  int64_t threads = 1;
  std::vector<int64_t> extents;
  Task::Drift drift;

  /// Whether the best point takes more of the default's time than recorded, by more than this part, or fails.
  bool isLost(double tolerance) const { return !drift.failure.empty() || drift.now > drift.recorded * (1 + tolerance); }
};

/// Measures the kernels of the model at each number of threads and extents that the file has for this machine, or the
/// one that `runner` is for, with the default among the points. `report` is called as they are measured. What that
/// machine cannot run is left out; fails if that is all.
llvm::Error measureDrift(const Graph &graph, const std::string &name, const LoweringOptions &options,
                         const TuningDatabase &database, const RunnerOptions &runner,
                         llvm::function_ref<void(const KernelDrift &)> report);

} // namespace kiln
