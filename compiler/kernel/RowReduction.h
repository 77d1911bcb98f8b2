// SPDX-License-Identifier: Apache-2.0
//
// How the ops of a kernel reduce, and what reads their results: maxima and sums along rows.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kiln {

/// Returns the op that computes an accumulator's next value from its last one, if the last one has no other use; null
/// otherwise.
mlir::Operation *accumulatingOp(mlir::Value next, mlir::BlockArgument accumulator);

/// Returns the combining op of a reduction with one result if it is one that may be reordered; null otherwise.
mlir::Operation *reorderableCombiner(mlir::linalg::GenericOp op);

/// Returns the number with which a reduction with one result starts; nullopt if it is no constant.
std::optional<double> startOf(mlir::linalg::GenericOp reduction);

/// Returns the number of the only input that is `value`, if the op reads it through `map`.
std::optional<unsigned> inputAt(mlir::linalg::GenericOp op, mlir::Value value, mlir::AffineMap map);

/// Returns the op that combines all elements of `value` along its last dimension, ordered or not; null if the op does
/// anything else.
mlir::Operation *rowCombiner(mlir::linalg::GenericOp op, mlir::Value value);

/// Whether one of `Combiners` reduces all elements of `value` along its last dimension, in any order.
template <typename... Combiners> bool isRowReduction(mlir::linalg::GenericOp op, mlir::Value value) {
  return reorderableCombiner(op) && mlir::isa_and_nonnull<Combiners...>(rowCombiner(op, value));
}

/// Whether the op computes its only result element by element, at the indices of its loops.
bool isElementwise(mlir::linalg::GenericOp op);

/// Returns the generic ops that use the value, in order.
llvm::SmallVector<mlir::linalg::GenericOp> genericUsers(mlir::Value value);

} // namespace kiln
