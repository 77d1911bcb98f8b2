// SPDX-License-Identifier: Apache-2.0
//
// Kernel functions -> objects: each kernel is a job of its own, so that they are compiled at the same time. One at
// which the code generator crashes is compiled once more for fewer instruction sets; one at which it crashes again or
// hangs is an error that names it. A kernel that was compiled before, in whatever model, comes from the cache. What is
// returned and reported does not depend on how many jobs run or on the cache.
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
  std::string symbol;                 // of its object
  std::optional<SchedulePoint> point; // none: the analytic default
};

/// A kernel is done.
struct KernelProgress {
  size_t done, total;
  const KernelRequest &kernel;
  double seconds;
  bool isCached;
};

struct KernelOptions {
  bool isolates = true;      // each kernel in a child; false: here, for a caller that is a job itself
  unsigned workers = 0;      // jobs at a time; 0: as many as there are CPUs that this process may use
  double secondsLimit = 600; // for one kernel; 0: none
  ObjectCache *cache = nullptr;
  bool checksMemory = false; // of each kernel, for a few values of its index arguments
  std::function<void(const KernelProgress &)> progress = nullptr;
};

/// Compiles all of `kernels` and returns their objects in the same order. If any fails, all are tried, and the words go
/// to `errors`, in the same order.
mlir::FailureOr<std::vector<KernelObject>> compileKernels(llvm::ArrayRef<KernelRequest> kernels,
                                                          const KernelOptions &options, llvm::raw_ostream &errors);

/// The text of each kernel in some form, without the cache.
mlir::FailureOr<std::vector<std::string>> printKernels(llvm::ArrayRef<KernelRequest> kernels, KernelText form,
                                                       const KernelOptions &options, llvm::raw_ostream &errors);

} // namespace kiln
