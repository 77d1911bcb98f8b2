// SPDX-License-Identifier: Apache-2.0
//
// How the ops of a kernel reduce, and which ops are elementwise.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kiln {

/// Returns the op that computes an accumulator's next value from its last one, if the last one has no other use; null
/// otherwise.
mlir::Operation *accumulatingOp(mlir::Value next, mlir::BlockArgument accumulator);

/// Returns the combining op of a reduction with one result if it is one that may be reordered; null otherwise.
mlir::Operation *reorderableCombiner(mlir::linalg::GenericOp op);

/// Whether the op computes its only result element by element, at the indices of its loops.
bool isElementwise(mlir::linalg::GenericOp op);

} // namespace kiln
