// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Gains.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln {

/// The fraction of the limit that schedules reach at best.
static constexpr double reachable = 0.97;
/// The assumed potential of a kernel whose limit is unknown.
static constexpr double unknownRoom = 0.3;
/// After this number of candidates without an improvement the expected gain halves.
static constexpr double patience = 8;
/// The assumed share of a kernel that no scenario calls, such as a shape-specialised variant for few rows.
static constexpr double leastShare = 0.02;

static double timeInModel(const KernelToTune &kernel, const TaskState &task) {
  double time = 0;
  for (auto [workload, seconds] : llvm::zip(kernel.workloads, task.defaultTimes))
    time += workload.calls * seconds;
  return time;
}

static double expectedGain(const TaskState &task) {
  if (task.isDone || task.defaultSeconds == 0)
    return 0;
  double room = task.limit == Limit::Unknown ? unknownRoom : std::max(0.0, 1 - task.limitFraction / reachable);
  return room * 0.5 * std::exp2(-double(task.sinceBest) / patience);
}

void estimateGains(TuneState &state, llvm::ArrayRef<KernelToTune> kernels, const std::vector<bool> &isLeftOut) {
  for (size_t i = 0; i < kernels.size(); ++i)
    state.shares[i] = timeInModel(kernels[i], *state.tasks[i]);
  double whole = std::accumulate(state.shares.begin(), state.shares.end(), 0.0);
  for (size_t i = 0; i < kernels.size(); ++i) {
    state.shares[i] = whole > 0 && state.shares[i] > 0 ? state.shares[i] / whole : leastShare;
    state.gains[i] = isLeftOut[i] ? 0 : state.shares[i] * expectedGain(*state.tasks[i]);
  }
}

} // namespace kiln
