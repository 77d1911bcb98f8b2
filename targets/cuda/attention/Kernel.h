// SPDX-License-Identifier: Apache-2.0
//
// Builds the attention kernel: scores, softmax and weighted sum of values, tile by tile of the keys.
#pragma once

#include "targets/cuda/attention/Combine.h"

namespace kiln::cuda {

/// Appends the function and its launch, and with split KV a second launch that combines the splits.
mlir::LogicalResult buildAttention(tile::Builder &b, const StageContext &first, const StageContext &last,
                                   const Attention &attention, const AttentionShape &shape, LaunchPlan &plan);

} // namespace kiln::cuda
