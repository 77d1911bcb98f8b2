// SPDX-License-Identifier: Apache-2.0
//
// What the host function does with whole rows that are one behind another in memory: a kiln.slice of them is within its
// operand's place, some bytes on, a kiln.concat copies what it puts together, and a kiln.slide writes rows after those
// of a state.
#pragma once

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// What one worker copies as fast as several do.
inline constexpr int64_t mostHostCopyBytes = 64 << 10;

/// Whether a slice or a concat is of such rows.
bool isRowsInPlace(Operation *op);

/// The value whose small floats this one has as 0, as states do; null if it is no such value.
Value getUnflushed(Value value);

/// The ops that make what the store keeps of a state's rows and others: the last rows of both, with small floats as 0.
/// None of other stores.
SmallVector<Operation *> getKeptRows(StoreOp store);

/// What gives the rows that the store keeps where they are; null of other stores.
SlideOp getSlide(StoreOp store);

} // namespace mlir::kiln
