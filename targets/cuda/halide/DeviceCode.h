// SPDX-License-Identifier: Apache-2.0
//
// A scheduled Halide pipeline as code of a device and the launches of a plan: what Halide's run time would do on the
// host is read out of the lowered program.
#pragma once

#include "targets/cuda/Plan.h"
#include "targets/halide/Translate.h"

namespace kiln::cuda {

struct DeviceCode {
  std::string text;      // PTX, or OpenCL C; its functions are called as in `functions`
  std::string statement; // as Halide lowered it, launches among it
  std::vector<DeviceFunction> functions;
  std::vector<Launch> launches;
};

/// `device`: features of Halide's Target, "cuda-cuda_capability_80" or "opencl". Throws Halide::Error at what Halide
/// refuses; emits a diagnostic at a launch for which a plan has no words, such as one with shared memory.
mlir::FailureOr<DeviceCode> compileForDevice(halide::Translator &translator, llvm::StringRef device);

} // namespace kiln::cuda
