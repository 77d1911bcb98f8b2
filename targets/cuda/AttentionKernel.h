// SPDX-License-Identifier: Apache-2.0
//
// The function that does an attention: scores, softmax and weighted sum of values, tile by tile of the keys.
#pragma once

#include "targets/cuda/AttentionJoin.h"

namespace kiln::cuda {

/// Appends the function and its launch; of several splits a second one that joins them.
mlir::LogicalResult buildAttention(tile::Builder &b, const StepContext &first, const StepContext &last,
                                   const Attention &attention, const AttentionShape &shape, DevicePlan &plan);

} // namespace kiln::cuda
