// SPDX-License-Identifier: Apache-2.0
//
// Which linears are what attention reads, and whether they can be one: a linear may be read directly, by heads, turned
// by rotary positions or normed on the way, and as rows of a state.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::kiln {

/// What a slice of a kiln.each_sequence is of; any other value itself.
Value getOutside(Value value);

/// The block that the operands of ops in this one may be computed in.
Block *getOutside(Block *block);

/// The rows of a state that attention reads, widened and moved.
AppendOp keptRows(Value value);

/// The linears that the value is made of, by views, moves, arithmetic and norms: those met first come first.
SmallVector<LinearOp> findLinears(Value value);

/// Whether all that reads the linear would read a slice of a joined one as well, and all that follows is attention or
/// rows of states.
bool isProjection(LinearOp linear);

/// Columns that stay together wherever the linear's result is split into heads: a joined one may be split so if each
/// part begins at a multiple of them.
int64_t getUnsplitColumns(LinearOp linear);

/// The result's last axis has become several; nothing else has.
bool splitsColumns(ReshapeOp view);

} // namespace mlir::kiln
