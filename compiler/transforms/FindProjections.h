// SPDX-License-Identifier: Apache-2.0
//
// Finds the linears that attention reads, and whether they can be joined. Attention may read a linear directly, split
// into heads, after rotary positions or norms, or as rows of a state (KV cache).
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::kiln {

/// Returns the value that an argument of a kiln.each_sequence is a slice of; any other value itself.
Value getOutside(Value value);

/// Returns the block outside of kiln.each_sequence in which the operands of the block's ops may be computed.
Block *getOutside(Block *block);

/// Returns the append to the state whose rows attention reads, looking through widening and movement.
AppendOp keptRows(Value value);

/// Returns the linears that the value depends on through views, movement, arithmetic and norms, nearest first.
SmallVector<LinearOp> findLinears(Value value);

/// Whether all users of the linear could read a slice of a joined linear instead, and lead to attention or rows of
/// states only.
bool isProjection(LinearOp linear);

/// Returns the number of columns that stay together wherever the linear's result is split into heads. A joined result
/// can be split the same way if each part starts at a multiple of this number.
int64_t getUnsplitColumns(LinearOp linear);

/// Whether the view splits the last axis into several and changes nothing else.
bool splitsColumns(ReshapeOp view);

} // namespace mlir::kiln
