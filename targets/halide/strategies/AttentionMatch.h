// SPDX-License-Identifier: Apache-2.0
//
// The structure of an attention kernel: softmax(masked(queries keys^T)) values, with any elementwise ops before and
// after. This file is independent of Halide.
#pragma once

#include "targets/halide/Structure.h"
#include "llvm/ADT/SetVector.h"

namespace kiln::halide {

/// A limit of the mask. A query attends to a key only if the key's index is below `value` (+ 1 if inclusive), which
/// does not decrease with the query's index. `value` is in the region of AttentionMatch::masked.
struct KeyLimit {
  mlir::Value value;
  bool isInclusive;
  bool growsWithQuery;
};

/// The ops of an attention kernel; shapes are [outer.., queries, keys] or [outer.., queries].
struct AttentionMatch {
  Contraction scores;
  mlir::linalg::GenericOp masked;              // the elementwise mask of the scores; null: they are not masked
  mlir::linalg::GenericOp maxima;              // the maxima of the masked scores along the keys
  mlir::linalg::GenericOp weights;             // e^(masked - maximum), to any base
  mlir::linalg::GenericOp sums;                // sums of the weights along the keys
  Contraction products;                        // [outer.., queries, channels]
  unsigned maskedScore = 0;                    // number of the operand of `masked` that is the score
  unsigned weightScore = 0, weightMaximum = 0; // numbers of the operands of `weights`
  llvm::SmallVector<KeyLimit> limits;          // keys outside of them get the weight 0
  llvm::SetVector<mlir::Operation *> perRow;   // parallel stages of the sums' shape
  llvm::SmallVector<int> productAt;            // maps each dimension of the products to one of the result
};

/// Whether keys or values are stored in fewer bits than f32, in which they are computed.
inline bool isOfFewBits(const Contraction &of) {
  mlir::linalg::GenericOp op = of.op;
  return bytesOf(op->getOperand(of.b), 1) < int64_t(sizeof(float));
}

/// Returns the ops of an attention kernel, or nothing if the kernel has another structure.
std::optional<AttentionMatch> matchAttentionOps(mlir::func::FuncOp kernel);

} // namespace kiln::halide
