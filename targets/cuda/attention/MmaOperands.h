// SPDX-License-Identifier: Apache-2.0
//
// The tensor-core operands of an attention: queries, keys and values that are all f16 or all bf16, or that may be
// rounded to tf32. Queries are often scaled in f32; then the unscaled queries are read, and the scores are scaled
// instead.
#pragma once

#include "targets/cuda/gemm/Match.h"
#include "targets/cuda/tile/Mma.h"

namespace kiln::cuda {

struct Attention;

struct AttentionMma {
  tile::MmaType type;
  float factor = 1; // scale of the scores
  // The queries are operand `query` of `op`. `loops` maps the loops of `op` to loops of the scores' op.
  mlir::linalg::GenericOp op;
  unsigned query = 0;
  llvm::SmallVector<unsigned> loops;

  bool isHalf() const { return tile::bytesOf(type) == 2; }
  unsigned channelLoop(const Attention &attention) const;
  /// Returns the indices of `op`'s loops, given those of the scores' op.
  tile::Values loopsAt(const tile::Values &ofScores) const;
};

/// Returns nullopt if CUDA cores compute the attention.
std::optional<AttentionMma> findAttentionMma(const Attention &attention, const Placement &placement);

} // namespace kiln::cuda
