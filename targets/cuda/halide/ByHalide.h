// SPDX-License-Identifier: Apache-2.0
//
// Kernels by Halide's schedules for GPUs instead of the tile builder. No Halide in this header.
#pragma once

#include "targets/cuda/Placement.h"
#include "targets/cuda/Plan.h"
#include "targets/target.h"

namespace kiln::cuda {

/// Whether a kernel whose steps are all done by `loops` can be one of Halide's: nothing is kept between its steps,
/// numbers of elements are i32, and results do not depend on how Halide takes infinities.
bool canBeByHalide(mlir::func::FuncOp kernel, const Placement &placement);

/// Appends the parameter "halide", 1: the kernel is made by Halide, and those of its schedule.
void addHalideParameters(mlir::func::FuncOp kernel, SearchSpace &space);

/// Whether the point asks for that.
bool isByHalide(const SchedulePoint &point);

/// Completes a plan, which has its schedule. Emits a diagnostic on failure.
mlir::LogicalResult planByHalide(mlir::func::FuncOp kernel, DevicePlan &plan);

} // namespace kiln::cuda
