// SPDX-License-Identifier: Apache-2.0
//
// The function NAME_batch of a batched entry: what the entry does, for several sequences.
//
//   prefill(tokens [T])          embedding linear | append attention | linear ...
//   prefill_batch(tokens [rows]) embedding linear | each_sequence { append attention } | linear ...
//
// What treats each row of the first axis by itself is done for the rows of all sequences at once. All else, and what
// has a state, is done in kiln.each_sequence as the entry does it.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// Adds the function behind `entry`, which is as imported.
mlir::LogicalResult batchEntry(mlir::func::FuncOp entry, const mlir::kiln::BatchSymbols &symbols);

} // namespace kiln
