// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks of a fixed number of parts, whatever that of the ranks (kiln.sum_parts of the module). Parts are
// added as a binary tree. A rank has a subtree; of all ranks' subtrees each rank adds up the rest.
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::kiln {

inline AffineExpr constantExtent(Value like, int64_t extent) {
  return getAffineConstantExpr(extent, like.getContext());
}

/// The sum of what stands along the first axis, as a binary tree; of a power of two.
Value addAsTree(GradientBuilder &b, Value stacked);

/// How many ranks there are, and how many parts of each sum one of them has.
struct RankParts {
  int64_t ranks, own;

  /// Nothing where sums have no fixed number of parts.
  static std::optional<RankParts> of(ModuleOp module);

  /// The sum of all ranks' parts, of which these are the own ones.
  Value add(GradientBuilder &b, SmallVector<Value> parts) const;
  /// Of a rank's share of each section of an axis the elements by parts: [..., own parts, elements of each, ...].
  SmallVector<Value> divide(GradientBuilder &b, Value x, int64_t axis, ShardAttr shard) const;
  /// Of each own part the sum of x^2, with x what a rank has along an axis that is split so.
  SmallVector<Value> squares(GradientBuilder &b, Value x, int64_t axis, ShardAttr shard) const;
};

} // namespace mlir::kiln
