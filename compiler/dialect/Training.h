// SPDX-License-Identifier: Apache-2.0
//
// Inputs of entries that train.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// Returns the input of that name, or null.
Value getInput(func::FuncOp function, StringRef name);

} // namespace mlir::kiln
