// SPDX-License-Identifier: Apache-2.0
//
// Makes kernels by Halide's GPU schedules instead of the tile builder. This header does not include Halide.
#pragma once

#include "targets/cuda/plan/KernelStages.h"
#include "targets/cuda/plan/LaunchPlan.h"
#include "targets/target.h"

namespace kiln::cuda {

/// Whether Halide can make a kernel whose stages are all executed by `loops`: nothing is stored between its stages,
/// numbers of elements fit i32, and results do not depend on how Halide treats infinities.
bool canBeByHalide(mlir::func::FuncOp kernel, const Placement &placement);

/// Appends the parameter "halide" (1: Halide makes the kernel), and those of Halide's schedule.
void addHalideParameters(mlir::func::FuncOp kernel, SearchSpace &space);

/// Whether the configuration selects Halide.
bool isByHalide(const ScheduleConfig &config);

/// Completes a plan whose schedule is set. Emits a diagnostic on failure.
mlir::LogicalResult planByHalide(mlir::func::FuncOp kernel, LaunchPlan &plan);

} // namespace kiln::cuda
