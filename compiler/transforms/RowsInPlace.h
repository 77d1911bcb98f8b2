// SPDX-License-Identifier: Apache-2.0
//
// Operations of the entry-point code on whole rows that are contiguous in memory: a kiln.slice of them is at an offset
// within its operand's memory, a kiln.concat copies its operands, and a kiln.slide writes rows after those of a state.
#pragma once

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// The largest size that one worker copies as fast as several do.
inline constexpr int64_t mostHostCopyBytes = 64 << 10;

/// Whether a slice or a concat consists of contiguous rows.
bool isRowsInPlace(Operation *op);

/// Returns the value of which this one is a copy with small floats flushed to 0, as states store them; null if it is
/// none.
Value getUnflushed(Value value);

/// Returns the ops that compute the rows that the store keeps: the last rows of the state and of new rows, with small
/// floats as 0. Returns an empty vector for other stores.
SmallVector<Operation *> getKeptRows(StoreOp store);

/// Returns the slide whose window holds the rows that the store keeps in place; null for other stores.
SlideOp getSlide(StoreOp store);

} // namespace mlir::kiln
