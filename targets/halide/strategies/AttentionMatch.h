// SPDX-License-Identifier: Apache-2.0
//
// A kernel that is one attention, softmax(masked(queries keys^T)) values, with any elementwise ops before and after.
// This file is independent of Halide.
#pragma once

#include "compiler/kernel/Attention.h"
#include "targets/halide/Structure.h"
#include "llvm/ADT/SetVector.h"

namespace kiln::halide {

/// The ops of an attention kernel; its limits do not decrease with the query's index. Shapes are [outer.., queries,
/// keys] or [outer.., queries].
struct AttentionMatch : AttentionOps {
  Contraction scores;
  Contraction products;                      // [outer.., queries, channels]
  llvm::SmallVector<KeyLimit> limits;        // keys outside of them get the weight 0
  llvm::SetVector<mlir::Operation *> perRow; // parallel stages of the sums' shape
  llvm::SmallVector<int> productAt;          // maps each dimension of the products to one of the result
};

/// Whether keys or values are stored in fewer bits than f32, in which they are computed.
inline bool isOfFewBits(const Contraction &of) {
  mlir::linalg::GenericOp op = of.op;
  return bytesOf(op->getOperand(of.b), 1) < int64_t(sizeof(float));
}

/// Returns the ops of an attention kernel, or nothing if the kernel has another structure.
std::optional<AttentionMatch> matchAttentionOps(mlir::func::FuncOp kernel);

} // namespace kiln::halide
