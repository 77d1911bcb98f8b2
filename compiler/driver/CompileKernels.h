// SPDX-License-Identifier: Apache-2.0
//
// Kernel functions -> objects: each kernel is a separate job, so that kernels are compiled in parallel. A kernel at
// which the code generator crashes is compiled once more for fewer instruction sets; if it crashes again or hangs, the
// error names the kernel. A kernel that was compiled before, for whatever model, comes from the cache. The results and
// reports depend neither on the number of jobs nor on the cache.
#pragma once

#include "compiler/jobs/ObjectCache.h"
#include "targets/target.h"
#include <functional>
#include <optional>

namespace kiln {

/// One kernel for one target.
struct KernelRequest {
  mlir::func::FuncOp function;
  const Target *target;
  std::string symbol;                   // symbol of its object
  std::optional<ScheduleConfig> config; // none: the analytic default
};

/// Progress after a kernel.
struct KernelProgress {
  size_t done, total;
  const KernelRequest &kernel;
  double seconds;
  bool isCached;
};

struct KernelOptions {
  bool isolates = true; // whether each kernel is compiled in a child process; false for a caller that is a job itself
  unsigned workers = 0; // jobs at a time; 0: the number of CPUs that this process may use
  double secondsLimit = 600; // time limit of one kernel; 0: none
  ObjectCache *cache = nullptr;
  bool checksMemory = false; // whether memory accesses are checked, for a few values of each kernel's index arguments
  std::function<void(const KernelProgress &)> progress = nullptr;
};

/// Compiles all of `kernels` and returns their objects in the same order. If any kernel fails, the others are still
/// compiled, and the messages go to `errors` in the same order.
mlir::FailureOr<std::vector<KernelObject>> compileKernels(llvm::ArrayRef<KernelRequest> kernels,
                                                          const KernelOptions &options, llvm::raw_ostream &errors);

/// Returns the text of each kernel in the given form, without the cache.
mlir::FailureOr<std::vector<std::string>> printKernels(llvm::ArrayRef<KernelRequest> kernels, KernelText form,
                                                       const KernelOptions &options, llvm::raw_ostream &errors);

} // namespace kiln
