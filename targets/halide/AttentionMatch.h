// SPDX-License-Identifier: Apache-2.0
//
// The structure of an attention kernel: softmax(masked(queries keys^T)) values, with anything element by element before
// and after. No Halide here.
#pragma once

#include "targets/halide/Structure.h"
#include "llvm/ADT/SetVector.h"

namespace kiln::halide {

/// A key counts for a query only if its index is below `value` (+ 1 if inclusive), which does not decrease with the
/// query's index. `value` belongs to the region of AttentionMatch::masked.
struct KeyLimit {
  mlir::Value value;
  bool isInclusive;
  bool growsWithQuery;
};

/// The ops of an attention; shapes are [outer.., queries, keys] or [outer.., queries].
struct AttentionMatch {
  Contraction scores;
  mlir::linalg::GenericOp masked;              // of the scores, element by element; null: the scores themselves
  mlir::linalg::GenericOp maxima;              // of masked along the keys
  mlir::linalg::GenericOp weights;             // e^(masked - maximum), to any base
  mlir::linalg::GenericOp sums;                // of the weights along the keys
  Contraction products;                        // [outer.., queries, channels]
  unsigned maskedScore = 0;                    // which operand of `masked` is the score
  unsigned weightScore = 0, weightMaximum = 0; // which operands of `weights`
  llvm::SmallVector<KeyLimit> limits;          // what `masked` gives a key beyond them has the weight 0
  llvm::SetVector<mlir::Operation *> perRow;   // parallel stages of the sums' shape
  llvm::SmallVector<int> productAt;            // for each dimension of the products that of the result
};

/// Whether keys, or values, are stored in fewer bits than the floats that they are computed as.
inline bool isOfFewBits(const Contraction &of) {
  mlir::linalg::GenericOp op = of.op;
  return bytesOf(op->getOperand(of.b), 1) < int64_t(sizeof(float));
}

/// Nothing if the kernel has another structure.
std::optional<AttentionMatch> matchAttentionOps(mlir::func::FuncOp kernel);

} // namespace kiln::halide
