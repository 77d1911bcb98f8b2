// SPDX-License-Identifier: Apache-2.0
//
// The strategy for cumulative sums: the threads that own a line compute it in one pass, tile after tile, each tile in a
// fixed order that depends on the schedule only.
#pragma once

#include "targets/cuda/plan/Strategy.h"

namespace kiln::cuda {

/// Matches a stage that stores elements computed from cumulative sums along one axis, all in one direction.
std::unique_ptr<StageStrategy> matchRunningSum(const StageContext &context);

} // namespace kiln::cuda
