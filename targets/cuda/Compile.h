// SPDX-License-Identifier: Apache-2.0
//
// Compiles a kernel function to an object for GPUs.
#pragma once

#include "targets/cuda/plan/LaunchPlan.h"
#include "targets/target.h"

namespace kiln::cuda {

/// Builds the kernel's functions and launches for a schedule configuration, by its strategies; null selects the
/// default configuration. Emits a diagnostic on failure.
mlir::FailureOr<LaunchPlan> planKernel(mlir::func::FuncOp kernel, const ScheduleConfig *config = nullptr);

/// `hostTriple`, `hostCpu`: the target of the host launcher, as in TargetInfo.
std::unique_ptr<KernelCompiler> createKernelCompiler(std::string hostTriple, std::string hostCpu);

} // namespace kiln::cuda
