// SPDX-License-Identifier: Apache-2.0
//
// The kernel stages of an attention: softmax(masked(queries keys^T)) values, with any element-wise ops between
// the matrix products and the softmax, and after them. Coordinates are those of the scores: batch, heads, queries, ..
// and keys.
#pragma once

#include "compiler/kernel/Attention.h"
#include "targets/cuda/attention/MmaOperands.h"

namespace kiln::cuda {

/// An axis along a part of a dimension of the scores. The coordinate in the dimension is `scale` times the axis index,
/// plus the coordinate of the other axis if the dimension has two.
struct AttentionAxis {
  unsigned dim;
  mlir::AffineExpr extent;
  int64_t scale = 1;
};

/// The first stage stores the masked scores.
struct Attention {
  AttentionOps ops;
  Contraction scores, outputs;             // QK^T in the first stage, PV in the last one
  unsigned query = 0, key = 0, value = 0;  // operand numbers: query and key in the scores' op, value in the outputs' op
  llvm::SmallVector<unsigned> scoreLoops;  // for each dimension of the scores, the loop of the scores' op
  llvm::SmallVector<unsigned> outputLoops; // the same in the outputs' op
  unsigned channelLoop = 0;                // channel loop of the outputs' op
  int64_t headDim = 0, channels = 0;       // head dimensions: of queries and keys, and of values
  llvm::SmallVector<AttentionAxis> batch;  // axes with separate keys and values
  llvm::SmallVector<AttentionAxis> rows;   // axes that share keys and values: queries, and heads of a group
  mlir::AffineExpr keys;                   // number of keys
  llvm::SmallVector<KeyLimit> limits;      // of the first stage's op, the same for all keys
  bool isPlainWithin = false;              // within its limits a score is the unmodified dot product
  size_t numStages = 0;
  std::optional<AttentionMma> mma;         // nullopt: CUDA cores compute it
  llvm::SmallVector<mlir::Value> unstored; // values that all stages but the last one store
};

/// Returns the attention whose scores the given kernel stage stores; nullopt if it stores none, or if the strategy does
/// not support how stages store the attention's values.
std::optional<Attention> findAttention(const StageContext &context);

/// Returns the product of the axes' extents.
mlir::AffineExpr extentOf(llvm::ArrayRef<AttentionAxis> axes, mlir::MLIRContext *context);

} // namespace kiln::cuda
