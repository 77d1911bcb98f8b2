// SPDX-License-Identifier: Apache-2.0
//
// The strategy that compiles every kernel: a thread for each element that is stored, reductions in a loop.
#pragma once

#include "targets/cuda/Plan.h"
#include "targets/target.h"

namespace kiln::cuda {

/// Its name and its search space.
Schedulable describeLoops();

/// The kernel's functions and launches at a point of that space. Emits a diagnostic at what there is no code for.
mlir::FailureOr<DevicePlan> planLoops(mlir::func::FuncOp kernel, const SchedulePoint &point);

} // namespace kiln::cuda
