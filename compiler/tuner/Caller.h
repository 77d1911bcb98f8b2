// SPDX-License-Identifier: Apache-2.0
//
// Calls of loaded kernels with the data of a workload.
#pragma once

#include "compiler/tuner/Executor.h"
#include "compiler/tuner/KernelData.h"
#include "compiler/tuner/LoadedKernel.h"

namespace kiln {

/// Calls kernels as an entry does: workers with scratch memory of the size that the kernel was said to need.
class Caller {
public:
  Caller(const Executor &executor, int64_t scratchBytes);

  /// With the first set of weights. Fails on a status that is not 0.
  llvm::Error call(const LoadedKernel &kernel, const KernelData &data) { return call(kernel, data, 0); }

  /// Seconds of one call, over `repeats` of them with rotating weights.
  double time(const LoadedKernel &kernel, const KernelData &data, unsigned repeats);

private:
  llvm::Error call(const LoadedKernel &kernel, const KernelData &data, size_t weights);

  size_t stride;
  std::vector<char> scratch;
  std::vector<kiln_worker_t> workers;
  std::vector<uint64_t> words;
  size_t rotation = 0;
};

} // namespace kiln
