// SPDX-License-Identifier: Apache-2.0
//
// Compiles a scheduled Halide pipeline to device code and the launches of a plan: what Halide's run time would do on
// the host is read from the lowered program.
#pragma once

#include "targets/cuda/plan/LaunchPlan.h"
#include "targets/halide/translate/Translator.h"

namespace kiln::cuda {

struct DeviceCode {
  std::string text;      // PTX, or OpenCL C; its functions are named as in `functions`
  std::string statement; // Halide's lowered statement, including launches
  std::vector<DeviceFunction> functions;
  std::vector<Launch> launches;
};

/// `device`: features of Halide's Target, "cuda-cuda_capability_80" or "opencl". Throws Halide::Error if Halide
/// rejects the pipeline; emits a diagnostic at a launch that a plan cannot represent, such as one with shared memory.
mlir::FailureOr<DeviceCode> compileForDevice(halide::Translator &translator, llvm::StringRef device);

} // namespace kiln::cuda
