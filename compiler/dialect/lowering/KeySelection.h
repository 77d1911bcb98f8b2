// SPDX-License-Identifier: Apache-2.0
//
// Which keys a query attends to: shared by attention_scores and the decomposition of kernel_attention.
#pragma once

#include "compiler/dialect/KernelAttention.h"
#include "compiler/dialect/lowering/KernelBuilder.h"

namespace mlir::kiln {

struct KeySelection {
  AffineExpr queries, keys; // their numbers
  AffineExpr causalOffset;  // the last key of a query is at its index plus this; null: it has no such limit
  std::optional<int64_t> window = std::nullopt; // with the offset: how many keys up to that one count

  /// Returns the offset with which the last query attends to the last key.
  static AffineExpr offsetOfLast(AffineExpr queries, AffineExpr keys) {
    return queries == keys ? getAffineConstantExpr(0, keys.getContext()) : keys - queries;
  }

  /// Returns the score if the query attends to the key, and the score of an excluded key otherwise. `length` is the
  /// number of the sequence's keys, or null. Sets the limits of the keys.
  Value select(ElementBuilder &b, Value score, const Coordinate &query, const Coordinate &key, Value length,
               AttentionOps &ops) const;
};

} // namespace mlir::kiln
