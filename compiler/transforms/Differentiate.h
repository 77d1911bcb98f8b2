// SPDX-License-Identifier: Apache-2.0
//
// Reverse mode: the gradients of a function's first result, a number, by its parameters. A stage of several that has no
// result gets gradients of what it sends from the next one, and sends back those of what it receives.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

struct DifferentiationOptions {
  bool recomputesLayers = false; // of a stack's layers only what they carry is kept
  Type keptAs = {};              // loops keep numbers of f32 as these; nothing: as they are
};

/// The gradients by these parameters, named as kiln.parameter has it ("h.{}.mlp.weight"), before the function's return;
/// of a parameter with copies they are stacked along new first axes. Failure after a diagnostic: the first result is no
/// f32 without axes or does not depend on one of them, or an op in between has no derivative.
FailureOr<SmallVector<Value>> differentiate(func::FuncOp entry, ArrayRef<std::string> parameters,
                                            const DifferentiationOptions &options = {});

/// Whether a loop that goes backwards does the op again rather than that its result is saved.
bool isDoneAgain(Operation *op);

/// Ops that say something of gradients alone go away: of an entry whose gradients nobody wants. `differentiate` does
/// it.
void eraseGradientMarks(func::FuncOp entry);

} // namespace mlir::kiln
