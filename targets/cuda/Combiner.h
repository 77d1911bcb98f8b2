// SPDX-License-Identifier: Apache-2.0
//
// How threads that each reduced a part of the elements join what they have. That is known of reductions whose order
// does not matter: sums, products, maxima, minima, bitwise operations, each result for itself, and the maximum with the
// first place where it is.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "targets/cuda/tile/Builder.h"
#include <optional>

namespace kiln::cuda {

class Combiner {
public:
  /// Nothing if the order matters, if an op is kiln.strict, or if results are neither f32 nor i32.
  static std::optional<Combiner> of(mlir::linalg::GenericOp op);

  /// What threads start with if one of them starts with `initial`: that again if it may count more than once.
  tile::Values neutral(tile::Builder &b, mlir::ValueRange initial) const;
  /// Of two parts. In whichever order they come, the result is the same.
  tile::Values combine(tile::Builder &b, mlir::ValueRange x, mlir::ValueRange y) const;

private:
  llvm::SmallVector<mlir::Operation *> ops; // of each result; empty: the maximum and its first place
};

} // namespace kiln::cuda
