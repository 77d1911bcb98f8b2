// SPDX-License-Identifier: Apache-2.0
//
// How kernels express that scores are masked: for targets that fuse attention, and for finding scores that are never
// needed.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

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
