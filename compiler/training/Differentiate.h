// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode differentiation: computes the gradients of a function's first result, a scalar, with respect to its
// parameters. A pipeline stage without a result receives gradients of what it sends from the next stage, and sends back
// gradients of what it has received.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

struct DifferentiationOptions {
  bool recomputesLayers = false; // keep only the carried values of a stack's layers, and recompute the rest
  Type keptAs = {};              // loops save f32 values in this type; null: in f32
};

/// Returns the gradients with respect to these parameters, named as kiln.parameter names them ("h.{}.mlp.weight"),
/// inserted before the function's return. Gradients of a parameter with copies are stacked along new leading axes.
/// Fails after a diagnostic if the first result is not a scalar f32 or does not depend on one of the parameters, or if
/// an op in between has no derivative.
FailureOr<SmallVector<Value>> differentiate(func::FuncOp entry, ArrayRef<std::string> parameters,
                                            const DifferentiationOptions &options = {});

/// Whether the reversed loop recomputes the op instead of reading its saved result.
bool isDoneAgain(Operation *op);

/// Erases ops that only affect gradients, from an entry that is not differentiated. `differentiate` calls it.
void eraseGradientMarks(func::FuncOp entry);

} // namespace mlir::kiln
