// SPDX-License-Identifier: Apache-2.0
//
// Products with at most eight rows whose weight has its columns side by side: lanes are columns there.
#pragma once

#include "targets/cuda/ContractionMatch.h"

namespace kiln::cuda {

/// How many rows the code of few rows is for.
int64_t fewRowsOf(const Contraction &contraction);

SearchSpace fewRowsAcrossSpace(const Contraction &contraction, const ContractionInput &weight);
BlockNeeds fewRowsAcrossNeeds(const Contraction &contraction, const ContractionInput &weight,
                              const SchedulePoint &point);

/// Appends the function and the launch.
mlir::LogicalResult buildFewRowsAcross(tile::Builder &b, const StepContext &context, const Contraction &contraction,
                                       const ContractionInput &weight, const SchedulePoint &point, DevicePlan &plan);

} // namespace kiln::cuda
