// SPDX-License-Identifier: Apache-2.0
//
// The place where kernels run and are timed: this machine's CPU, its GPU, or another machine. The procedure of
// comparisons is the same for all. A session must run in a child process: a kernel that crashes, hangs or corrupts a
// GPU context affects only its session, and the next one starts with a new context.
#pragma once

#include "compiler/tuner/KernelData.h"
#include "compiler/tuner/LoadedKernel.h"
#include "compiler/tuner/MeasurementProgram.h"
#include "compiler/tuner/Probes.h"

namespace kiln {

/// A loaded kernel, called with the data of a workload.
class Caller {
public:
  virtual ~Caller() = default;

  /// Calls the kernel with the first copy of the weights; the results are in `data` afterwards. Fails on a status other
  /// than 0. All kernels of a session must be loaded before.
  virtual llvm::Error call(KernelData &data) = 0;

  /// Returns the seconds per call over at least `repeats` calls with rotating weights. `data`: that of the last call().
  virtual llvm::Expected<double> time(KernelData &data, unsigned repeats) = 0;
};

class Session {
public:
  virtual ~Session() = default;

  /// `threads`: of the CPU. `runner`: for another machine. Fails if there is no such device, or it is unavailable.
  static llvm::Expected<std::unique_ptr<Session>> open(const TargetInfo &target, unsigned threads,
                                                       const RunnerOptions &runner);

  /// The caller must be destroyed before the session. Fails on code that cannot be loaded.
  virtual llvm::Expected<std::unique_ptr<Caller>> load(const KernelCode &code, const KernelAbi &abi) = 0;

  /// Measures the machine's peak rates within each footprint, in bytes.
  virtual std::vector<Rates> probe(const MachineModel &machine, llvm::ArrayRef<int64_t> footprints) = 0;
};

/// Runs on the threads of a pool, as a program that embeds a model would pass it.
std::unique_ptr<Session> openHostSession(unsigned threads);

/// Runs in a program that a script links and runs.
std::unique_ptr<Session> openRunnerSession(const TargetInfo &target, unsigned threads, const RunnerOptions &options);

/// Runs on the first GPU that the driver finds.
llvm::Expected<std::unique_ptr<Session>> openCudaSession();

} // namespace kiln
