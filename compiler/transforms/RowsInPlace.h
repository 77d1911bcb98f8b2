// SPDX-License-Identifier: Apache-2.0
//
// What the host function does with whole rows that are one behind another in memory: a kiln.slice of them is within its
// operand's place, some bytes on, and a kiln.concat copies what it puts together.
#pragma once

#include "mlir/IR/Operation.h"

namespace mlir::kiln {

/// What one worker copies as fast as several do.
inline constexpr int64_t mostHostCopyBytes = 64 << 10;

/// Whether a slice or a concat is of such rows.
bool isRowsInPlace(Operation *op);

} // namespace mlir::kiln
