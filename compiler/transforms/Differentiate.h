// SPDX-License-Identifier: Apache-2.0
//
// Reverse mode: the gradient of a function's first result, a number, by its parameters.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// Makes the gradient by each parameter a further result of the entry, in the order of the parameters' first use, with
/// the name `gradientName` of the parameter's; of a parameter with copies they are stacked along a new first axis.
/// Failure after a diagnostic: the first result is no f32 without axes, or an op in between has no derivative.
LogicalResult differentiate(func::FuncOp entry);

/// What the gradient by a parameter is called among an entry's results: "grad_h_mlp_weight" for "h.{}.mlp.weight".
std::string gradientName(StringRef parameter);

} // namespace mlir::kiln
