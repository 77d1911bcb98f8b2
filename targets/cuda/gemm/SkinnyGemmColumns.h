// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMMs with at most eight rows whose weight is contiguous along its columns: lanes are mapped to columns.
#pragma once

#include "targets/cuda/gemm/NormPrologue.h"

namespace kiln::cuda {

/// Returns the number of rows for which the skinny-GEMM code is built.
int64_t fewRowsOf(const Contraction &contraction);

SearchSpace fewRowsAcrossSpace(const Contraction &contraction, const ContractionInput &weight);
BlockNeeds fewRowsAcrossNeeds(const Contraction &contraction, const ContractionInput &weight,
                              const SchedulePoint &point);

/// Appends the function and the launch. `norm`: the fused norm that computes the input row, or null if the input is in
/// memory.
mlir::LogicalResult buildFewRowsAcross(tile::Builder &b, const RowProduct &product, const NormedRow *norm,
                                       const ContractionInput &weight, const SchedulePoint &point, DevicePlan &plan);

} // namespace kiln::cuda
