// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::kiln {

/// Returns the values that the op reads, including uses in its regions.
inline SmallVector<Value> readBy(Operation *op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values.takeVector();
}

} // namespace mlir::kiln
