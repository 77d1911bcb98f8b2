// SPDX-License-Identifier: Apache-2.0
//
// Combines the partial results of threads that each reduced a part of the elements. This is possible for reductions
// whose order does not matter: sums, products, maxima, minima and bitwise operations, each result independently, and
// the maximum with its first index (argmax).
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "targets/cuda/tile/Builder.h"
#include <optional>

namespace kiln::cuda {

class Combiner {
public:
  /// Returns nullopt if the order matters, if an op is kiln.strict, or if results are neither f32 nor i32.
  static std::optional<Combiner> of(mlir::linalg::GenericOp op);

  /// Returns what all other threads start with if one thread starts with `initial`: the neutral element, or `initial`
  /// itself if the op is idempotent.
  tile::Values neutral(tile::Builder &b, mlir::ValueRange initial) const;
  /// Combines two partial results. Swapping them does not change the result.
  tile::Values combine(tile::Builder &b, mlir::ValueRange x, mlir::ValueRange y) const;

private:
  llvm::SmallVector<mlir::Operation *> ops; // one for each result; empty: argmax
};

} // namespace kiln::cuda
