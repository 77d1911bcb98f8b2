// SPDX-License-Identifier: Apache-2.0
//
// What a program that calls kernels on another machine is linked from: runtime/src/trial.c with the run time around it,
// the kernels, and code made for them that calls them by their calling convention.
#pragma once

#include "compiler/object/Object.h"
#include "compiler/tuner/LoadedKernel.h"
#include "compiler/tuner/Runner.h"
#include "targets/target.h"

namespace kiln {

/// What the kernels of a trial take: extents, and of each tensor the element and the rank.
struct TrialArguments {
  struct Tensor {
    mlir::Type element;
    int64_t rank;
  };
  size_t extents = 0;
  std::vector<Tensor> tensors;
  const KernelAbi *abi = nullptr;
};

/// How programs get to another machine.
struct RunnerOptions {
  std::string script; // Runner.h; empty: kernels run on this machine
  std::string folder; // for the program
};

/// Links the program by the script and starts it. `kernels` may be none: then it tells of its machine alone.
/// Fails for a target that this build of Kiln has no run time for, and if what answers is another program.
llvm::Expected<std::unique_ptr<Runner>> startTrialProgram(const RunnerOptions &options, const TargetInfo &target,
                                                          llvm::ArrayRef<KernelCode> kernels,
                                                          const TrialArguments &arguments);

} // namespace kiln
