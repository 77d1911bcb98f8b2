// SPDX-License-Identifier: Apache-2.0
//
// Reverse mode: the gradient of a function's first result, a number, by its parameters.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// A parameter to differentiate by, as kiln.parameter has it ("h.{}.mlp.weight"), and what the result is called.
struct GradientOf {
  std::string parameter, name;
};

/// Makes the gradients by these parameters further results of the entry; of a parameter with copies they are stacked
/// along new first axes. Failure after a diagnostic: the first result is no f32 without axes or does not depend on one
/// of them, or an op in between has no derivative.
LogicalResult differentiate(func::FuncOp entry, ArrayRef<GradientOf> wanted);

} // namespace mlir::kiln
