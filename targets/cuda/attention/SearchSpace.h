// SPDX-License-Identifier: Apache-2.0
//
// The search space of attention. With many rows, the threads of a block share tiles of keys and values. With few rows,
// as in decoding, attention is memory-bound: each warp processes disjoint keys, and blocks split the keys of a row
// (split KV) until the GPU is full.
#pragma once

#include "targets/cuda/attention/Match.h"
#include "targets/cuda/attention/TileShape.h"

namespace kiln::cuda {

/// The most rows that one warp computes by itself.
constexpr int64_t mostSkinnyRows = 16;

/// Tensor cores compute attention of the types that they support with more than mostSkinnyRows rows.
SearchSpace attentionSpace(const Attention &attention, mlir::func::FuncOp kernel);
AttentionShape attentionShapeOf(const Attention &attention, const ScheduleConfig &config);
BlockNeeds needsOf(const AttentionShape &shape);

} // namespace kiln::cuda
