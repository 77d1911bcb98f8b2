// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices for GPUs of compute capability 9.0. A block has four warps of which one thread asks for tiles of
// the inputs, and four or eight that multiply what has come; it does one tile of the sums after the other.
#pragma once

#include "targets/cuda/ContractionMatch.h"

namespace kiln::cuda {

/// Gives the contraction's launches, the plan's from `first` on, this form where it has one.
mlir::LogicalResult buildWgmma(tile::Builder &b, const StepContext &context, const Contraction &contraction,
                               size_t first, const SchedulePoint &point, DevicePlan &plan);

} // namespace kiln::cuda
