// SPDX-License-Identifier: Apache-2.0
//
// Gradient accumulation for entries whose calls take several micro-batches.
#pragma once

#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// Moves the whole function to the body of a loop over micro-batches. Its own inputs get a first axis, over which the
/// loop iterates; the loss and the gradients become sums times `factor`, and other results are stacked. With `parts`,
/// there are that many sums over equal numbers of micro-batches, which are added as a binary tree.
void accumulate(mlir::func::FuncOp function, const Graph &graph, const Entry &entry, int64_t parts, double factor,
                llvm::MutableArrayRef<mlir::Value> gradients);

/// Does the same for a pipeline stage that receives gradients from the next one. The ops before the receive become a
/// separate loop, which is at most `ahead` - 1 iterations ahead of the second loop. The function has no results.
void accumulateApart(mlir::func::FuncOp function, const Graph &graph, const Entry &entry, int64_t ahead,
                     llvm::MutableArrayRef<mlir::Value> gradients);

} // namespace kiln
