// SPDX-License-Identifier: Apache-2.0
//
// GEMMs for GPUs of compute capability 9.0. A block has a producer warpgroup, of which one thread issues TMA copies of
// input tiles, and one or two consumer warpgroups, which multiply them; it computes one tile after the other.
#pragma once

#include "targets/cuda/gemm/Match.h"

namespace kiln::cuda {

/// Adds the TMA variant to the contraction's launches, those of the plan from `first` on, if it has one.
mlir::LogicalResult buildWgmma(tile::Builder &b, const StageContext &context, const Contraction &contraction,
                               size_t first, const ScheduleConfig &config, LaunchPlan &plan);

} // namespace kiln::cuda
