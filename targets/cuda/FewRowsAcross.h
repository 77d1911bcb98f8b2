// SPDX-License-Identifier: Apache-2.0
//
// Products with at most eight rows whose weight has its columns side by side: lanes are columns there.
#pragma once

#include "targets/cuda/NormedRow.h"

namespace kiln::cuda {

/// How many rows the code of few rows is for.
int64_t fewRowsOf(const Contraction &contraction);

SearchSpace fewRowsAcrossSpace(const Contraction &contraction, const ContractionInput &weight);
BlockNeeds fewRowsAcrossNeeds(const Contraction &contraction, const ContractionInput &weight,
                              const SchedulePoint &point);

/// Appends the function and the launch. `norm`: the row that the product is of, if that is not in memory.
mlir::LogicalResult buildFewRowsAcross(tile::Builder &b, const RowProduct &product, const NormedRow *norm,
                                       const ContractionInput &weight, const SchedulePoint &point, DevicePlan &plan);

} // namespace kiln::cuda
