// SPDX-License-Identifier: Apache-2.0
//
// Where kernels run and are timed: on this machine's CPU, on its GPU, or on another machine. What is compared, in which
// order and how often is the same for all. A session is for child processes: a kernel that crashes, hangs or breaks a
// GPU's context takes its session with it, and the next one begins with a clean context.
#pragma once

#include "compiler/tuner/KernelData.h"
#include "compiler/tuner/LoadedKernel.h"
#include "compiler/tuner/Probes.h"
#include "compiler/tuner/TrialProgram.h"

namespace kiln {

/// A loaded kernel, called with the data of a workload.
class Caller {
public:
  virtual ~Caller() = default;

  /// With the first set of weights; the results are in `data` afterwards. Fails on a status that is not 0. All kernels
  /// of a session are loaded before.
  virtual llvm::Error call(KernelData &data) = 0;

  /// Seconds of one call, over `repeats` of them with rotating weights, at the least. `data`: that of the last call().
  virtual llvm::Expected<double> time(KernelData &data, unsigned repeats) = 0;
};

class Session {
public:
  virtual ~Session() = default;

  /// `threads`: of the CPU. `runner`: for another machine. Fails if there is no such device, or it cannot be had.
  static llvm::Expected<std::unique_ptr<Session>> open(const TargetInfo &target, unsigned threads,
                                                       const RunnerOptions &runner);

  /// The caller must end before the session. Fails on code that cannot be loaded.
  virtual llvm::Expected<std::unique_ptr<Caller>> load(const KernelCode &code, const KernelAbi &abi) = 0;

  /// What the machine does at best within each footprint, in bytes.
  virtual std::vector<Rates> probe(const MachineModel &machine, llvm::ArrayRef<int64_t> footprints) = 0;
};

/// On the threads of a pool, as a program that embeds a model would pass it.
std::unique_ptr<Session> openHostSession(unsigned threads);

/// In a program that a script links and runs.
std::unique_ptr<Session> openRunnerSession(const TargetInfo &target, unsigned threads, const RunnerOptions &options);

/// On the first GPU that the driver finds.
llvm::Expected<std::unique_ptr<Session>> openCudaSession();

} // namespace kiln
