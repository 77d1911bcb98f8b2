// SPDX-License-Identifier: Apache-2.0
//
// Checks whether a tuning file is still accurate on this machine: measures the best recorded configuration of each
// kernel against the default again.
#pragma once

#include "compiler/driver/Lower.h"
#include "compiler/tuner/Task.h"
#include "kiln/graph.h"

namespace kiln {

/// A kernel under one condition of the file.
struct KernelDrift {
  std::string target, kernel;
  int64_t threads = 1;
  std::vector<int64_t> extents;
  Task::Drift drift;

  /// Whether the best configuration's time relative to the default exceeds the recorded ratio by more than `tolerance`,
  /// or fails.
  bool isLost(double tolerance) const { return !drift.failure.empty() || drift.now > drift.recorded * (1 + tolerance); }
};

/// Measures the kernels of the model under each condition (threads and sizes) that the file has for this machine, or
/// for that of `runner`, and that includes the default. Calls `report` for each kernel. Kernels that the machine cannot
/// run are skipped; fails if all are.
llvm::Error measureDrift(const Graph &graph, const std::string &name, const LoweringOptions &options,
                         const TuningDatabase &database, const RunnerOptions &runner,
                         llvm::function_ref<void(const KernelDrift &)> report);

} // namespace kiln
