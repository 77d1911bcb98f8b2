// SPDX-License-Identifier: Apache-2.0
//
// Reverse mode: the gradients of a function's first result, a number, by its parameters.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// The gradients by these parameters, named as kiln.parameter has it ("h.{}.mlp.weight"), before the function's return;
/// of a parameter with copies they are stacked along new first axes. Failure after a diagnostic: the first result is no
/// f32 without axes or does not depend on one of them, or an op in between has no derivative. `recomputesLayers`: of a
/// stack's layers only what they carry is kept for its gradients.
FailureOr<SmallVector<Value>> differentiate(func::FuncOp entry, ArrayRef<std::string> parameters,
                                            bool recomputesLayers = false);

} // namespace mlir::kiln
