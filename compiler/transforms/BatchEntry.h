// SPDX-License-Identifier: Apache-2.0
//
// Creates the function NAME_batch of a batched entry, which computes the entry for several sequences.
//
//   prefill(tokens [T])          embedding linear | append attention | linear ...
//   prefill_batch(tokens [rows]) embedding linear | each_sequence { append attention } | linear ...
//
// Ops that treat each row of the first axis independently run once for the rows of all sequences. All other ops, and
// ops with states, run in kiln.each_sequence as in the entry.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// Adds the batched function after `entry`, which must be as imported.
mlir::LogicalResult batchEntry(mlir::func::FuncOp entry, const mlir::kiln::BatchSymbols &symbols);

} // namespace kiln
