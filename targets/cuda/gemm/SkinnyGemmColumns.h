// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMMs with at most eight rows whose weight is contiguous along its columns: lanes are mapped to columns.
#pragma once

#include "targets/cuda/gemm/NormPrologue.h"

namespace kiln::cuda {

/// Returns the number of rows for which the skinny-GEMM code is built.
int64_t skinnyRowsOf(const Contraction &contraction);

SearchSpace skinnyGemmColumnsSpace(const Contraction &contraction, const ContractionInput &weight);
BlockNeeds skinnyGemmColumnsNeeds(const Contraction &contraction, const ContractionInput &weight,
                                  const ScheduleConfig &config);

/// Appends the function and the launch. `norm`: the fused norm that computes the input row, or null if the input is in
/// memory.
mlir::LogicalResult buildSkinnyGemmColumns(tile::Builder &b, const RowProduct &product, const NormPrologue *norm,
                                           const ContractionInput &weight, const ScheduleConfig &config,
                                           LaunchPlan &plan);

} // namespace kiln::cuda
