// SPDX-License-Identifier: Apache-2.0
//
// Matches the softmax of masked scores in kernels: for targets that fuse its ops, and for finding scores that are never
// needed.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

/// Returns the number of the only input that is `value`, if the op reads it through `map`.
std::optional<unsigned> inputAt(mlir::linalg::GenericOp op, mlir::Value value, mlir::AffineMap map);

/// Returns the op that combines all elements of `value` along its last dimension, ordered or not; null if the op does
/// anything else.
mlir::Operation *rowCombiner(mlir::linalg::GenericOp op, mlir::Value value);

/// select(condition, score, very low): an excluded score has the weight 0 compared with any other.
struct Mask {
  mlir::Value condition, score;

  /// Splits a condition `a and b and ..` of type i1.
  llvm::SmallVector<mlir::Value> conditions() const;
};

/// Returns nullopt if the value is not masked.
std::optional<Mask> asMask(mlir::Value value);

/// index < value, or <= if it is inclusive.
struct UpperLimit {
  mlir::linalg::IndexOp index;
  mlir::Value value;
  bool isInclusive;
};

/// Returns nullopt for other conditions.
std::optional<UpperLimit> asUpperLimit(mlir::Value condition);

} // namespace kiln
