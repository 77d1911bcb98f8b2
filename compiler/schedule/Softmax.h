// SPDX-License-Identifier: Apache-2.0
//
// How kernels write the softmax of masked scores: what targets look for when they build its ops as one, and what knows
// which scores are never needed.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

/// The number of the one input that is `value`, if the op reads it through `map`.
std::optional<unsigned> inputAt(mlir::linalg::GenericOp op, mlir::Value value, mlir::AffineMap map);

/// What the op joins all elements of `value` along its last dimension by, be it in order or not; null if it does
/// something else.
mlir::Operation *rowCombiner(mlir::linalg::GenericOp op, mlir::Value value);

/// select(condition, score, very low): beside any other score an excluded one has the weight 0.
struct Mask {
  mlir::Value condition, score;

  /// Of an i1 that is `a and b and ..`.
  llvm::SmallVector<mlir::Value> conditions() const;
};

/// Nothing if the value is chosen in another way.
std::optional<Mask> asMask(mlir::Value value);

/// index < value, or <= if it is inclusive.
struct UpperLimit {
  mlir::linalg::IndexOp index;
  mlir::Value value;
  bool isInclusive;
};

/// Nothing if the condition is another one.
std::optional<UpperLimit> asUpperLimit(mlir::Value condition);

} // namespace kiln
