// SPDX-License-Identifier: Apache-2.0
//
// The search space of attention. Of many rows, a block's threads share tiles of keys and values. Of few, as decoding
// has, memory bounds it: each warp takes keys of its own, and blocks share the keys of a row until a GPU is full.
#pragma once

#include "targets/cuda/AttentionMatch.h"
#include "targets/cuda/AttentionShape.h"

namespace kiln::cuda {

/// Rows that one warp does.
constexpr int64_t fewRows = 16;

/// Tensor cores do what is of their types and has more rows.
SearchSpace attentionSpace(const Attention &attention, mlir::func::FuncOp kernel);
AttentionShape attentionShapeOf(const Attention &attention, const SchedulePoint &point);
BlockNeeds needsOf(const AttentionShape &shape);

} // namespace kiln::cuda
