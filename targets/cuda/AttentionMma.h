// SPDX-License-Identifier: Apache-2.0
//
// What tensor cores multiply in an attention: queries, keys and values that are all f16 or all bf16, or that may be
// rounded to tf32. Queries are often scaled, in f32; then they are read as they were before, and the scores are scaled.
#pragma once

#include "targets/cuda/ContractionMatch.h"
#include "targets/cuda/tile/Mma.h"

namespace kiln::cuda {

struct Attention;

struct AttentionMma {
  tile::MmaType type;
  float factor = 1; // of the scores
  // The queries: an operand, of which the op's loops are those loops of the scores' op.
  mlir::linalg::GenericOp op;
  unsigned query = 0;
  llvm::SmallVector<unsigned> loops;

  bool isShort() const { return tile::bytesOf(type) == 2; }
  unsigned channelLoop(const Attention &attention) const;
  /// The op's loops at those of the scores' op.
  tile::Values loopsAt(const tile::Values &ofScores) const;
};

/// Nothing: CUDA cores do it.
std::optional<AttentionMma> findAttentionMma(const Attention &attention, const Placement &placement);

} // namespace kiln::cuda
