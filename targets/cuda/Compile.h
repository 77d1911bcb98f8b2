// SPDX-License-Identifier: Apache-2.0
//
// A kernel function to an object for a GPU.
#pragma once

#include "targets/cuda/Plan.h"
#include "targets/target.h"

namespace kiln::cuda {

/// The kernel's functions and launches, as its strategy makes them at a point of its search space; null: at the preset.
/// Emits a diagnostic on failure.
mlir::FailureOr<DevicePlan> planKernel(mlir::func::FuncOp kernel, const SchedulePoint *point = nullptr);

/// `hostTriple`, `hostCpu`: of the stub by which host code launches it, TargetInfo's.
std::unique_ptr<KernelCompiler> createKernelCompiler(std::string hostTriple, std::string hostCpu);

} // namespace kiln::cuda
