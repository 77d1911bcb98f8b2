// SPDX-License-Identifier: Apache-2.0
//
// kiln.kernel_attention (KernelOps.td) and its decomposition to linalg ops, which code generators ask for. They get
// each of these ops, and the limits of keys, so that they need not recognise them.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

// The generated code has parameters that it does not use.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define GET_OP_CLASSES
#include "compiler/dialect/KernelOps.h.inc"
#pragma GCC diagnostic pop

namespace mlir::kiln {

/// A limit of the keys: a query attends to a key only if the key's index is below `value`, or equal to it if the limit
/// is inclusive. `value` is in the region of AttentionOps::masked.
struct KeyLimit {
  Value value;
  bool isInclusive = false;
  bool growsWithQuery = false; // otherwise it is the same for all queries
};

/// The linalg ops of an attention, in their order; shapes are [batch.., heads, queries, keys] and [batch.., heads,
/// queries]. Each is used only by those after it.
struct AttentionOps {
  linalg::GenericOp scaled;   // queries in log2 units, [batch.., heads, queries, channels]
  linalg::GenericOp scores;   // products of these and the keys
  linalg::GenericOp masked;   // the elementwise mask of the scores; null: they are not masked
  linalg::GenericOp maxima;   // the maxima of the masked scores along the keys
  linalg::GenericOp weights;  // 2^(masked - maximum)
  linalg::GenericOp sums;     // sums of the weights along the keys
  linalg::GenericOp inverses; // the reciprocals of the sums, or with a sink of the sums and its weights; 0: no key
  linalg::GenericOp products; // sums of weighted values, [batch.., heads, queries, channels]
  linalg::GenericOp result;   // products times reciprocals, [batch.., queries, heads, channels]
  SmallVector<KeyLimit> limits;
  Value beforeWindow; // in the region of `masked`: keys up to this one are before the query's window; null: no window
  bool isPlainWithin = true; // whether the score of a key within the limits is not modified
  bool readsMaxima = false;  // whether the inverses depend on the maxima, too

  // Numbers of the operands that are the results of earlier ops; the keys and values of the products come after them.
  static constexpr unsigned scaledOfScores = 0, scoreOfMasked = 0, maximumOfWeights = 0, scoreOfWeights = 1,
                            weightOfProducts = 0;

  /// Returns the op whose result the weights are computed from: `masked`, or else `scores`.
  linalg::GenericOp lastScores() const { return masked ? masked : scores; }
};

/// Replaces the op by linalg ops.
AttentionOps decompose(KernelAttentionOp op);

} // namespace mlir::kiln
