// SPDX-License-Identifier: Apache-2.0
//
// Builds the program that calls kernels on another machine: compiler/tuner/measurement.c with the runtime library, the
// kernels, and generated code that calls them by their calling convention.
#pragma once

#include "compiler/object/Object.h"
#include "compiler/tuner/LoadedKernel.h"
#include "compiler/tuner/Runner.h"
#include "targets/target.h"

namespace kiln {

/// The arguments of a trial's kernels: sizes, and element type and rank of each tensor.
struct MeasurementArguments {
  struct Tensor {
    mlir::Type element;
    int64_t rank;
  };
  size_t extents = 0;
  std::vector<Tensor> tensors;
  const KernelAbi *abi = nullptr;
};

/// How programs are run on another machine.
struct RunnerOptions {
  std::string script; // see Runner.h; empty: kernels run on this machine
  std::string folder; // for the program
};

/// Links the program with the script and starts it. Without `kernels` it only describes its machine. Fails for a target
/// for which this build of Kiln has no runtime library, and if another program answers.
llvm::Expected<std::unique_ptr<Runner>> startMeasurementProgram(const RunnerOptions &options, const TargetInfo &target,
                                                                llvm::ArrayRef<KernelCode> kernels,
                                                                const MeasurementArguments &arguments);

} // namespace kiln
