// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks as sums of a fixed number of parts, independent of the number of ranks (kiln.reduction_parts of the
// module). Parts are added as a binary tree. Each rank adds up its subtree, and then adds the subtrees of all ranks
// redundantly.
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::kiln {

inline AffineExpr constantExtent(Value like, int64_t extent) {
  return getAffineConstantExpr(extent, like.getContext());
}

/// Splits [n, ...] into n values of [...].
SmallVector<Value> unstack(GradientBuilder &b, Value stacked);

/// Adds the slices along the first axis as a binary tree; their number is a power of two.
Value addAsTree(GradientBuilder &b, Value stacked);

/// The number of ranks, and the number of parts of each sum that one rank has.
struct RankParts {
  int64_t ranks, own;

  /// Returns nullopt where sums have no fixed number of parts.
  static std::optional<RankParts> of(ModuleOp module);

  /// Adds the parts of all ranks, given this rank's own parts.
  Value add(GradientBuilder &b, SmallVector<Value> parts) const;
  /// Divides a rank's share of each section of an axis into parts: [..., own parts, elements of each, ...].
  SmallVector<Value> divide(GradientBuilder &b, Value x, int64_t axis, ShardAttr shard) const;
  /// Returns the sum of x^2 of each own part, with x the rank's share along an axis that is split this way.
  SmallVector<Value> squares(GradientBuilder &b, Value x, int64_t axis, ShardAttr shard) const;
};

} // namespace mlir::kiln
