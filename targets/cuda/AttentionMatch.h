// SPDX-License-Identifier: Apache-2.0
//
// Which steps are an attention: softmax(masked(queries keys^T)) values, with anything element by element between the
// products and the softmax, and behind it. Coordinates are those of the scores: batch, heads, queries, .. and keys.
#pragma once

#include "targets/cuda/AttentionMma.h"

namespace kiln::cuda {

/// A part of a dimension of the scores that is counted by itself: the coordinate is `scale` times its number, and more
/// if the dimension has another part.
struct AttentionAxis {
  unsigned dim;
  mlir::AffineExpr extent;
  int64_t scale = 1;
};

/// A key counts for a row only if its number is below `value`, a value of the region that masks scores.
struct KeyLimit {
  mlir::Value value;
  bool isInclusive = false; // below it or equal
};

struct Attention {
  Contraction scores, outputs; // of the first and of the last step
  mlir::linalg::GenericOp maxima, weights, sums;
  unsigned query = 0, key = 0, value = 0;  // operands of the scores' op, and of the outputs'
  llvm::SmallVector<unsigned> scoreLoops;  // the loop of the scores' op for each dimension of the scores
  llvm::SmallVector<unsigned> outputLoops; // and of the outputs' op
  unsigned channelLoop = 0;                // of the outputs' op
  int64_t depth = 0, channels = 0;         // of a head's queries and keys, and of its values
  llvm::SmallVector<AttentionAxis> batch;  // with keys and values of their own
  llvm::SmallVector<AttentionAxis> rows;   // those that share them: queries, and heads of a group
  mlir::AffineExpr keys;                   // how many
  llvm::SmallVector<KeyLimit> limits;      // of the first step's op
  bool isPlainWithin = false;              // below its limits a score is the product itself
  size_t numSteps = 0;
  std::optional<AttentionMma> mma;         // nothing: it is for CUDA cores
  llvm::SmallVector<mlir::Value> unstored; // what the steps store but for the last one
};

/// The attention whose scores the step stores.
std::optional<Attention> findAttention(const StepContext &context);

/// The product of the axes' extents.
mlir::AffineExpr extentOf(llvm::ArrayRef<AttentionAxis> axes, mlir::MLIRContext *context);

} // namespace kiln::cuda
