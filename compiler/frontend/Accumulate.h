// SPDX-License-Identifier: Apache-2.0
//
// Entries whose calls take several micro-batches.
#pragma once

#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// Makes the function, all of it, the body of a loop over micro-batches: its own inputs get a first axis, which the
/// loop takes apart, the loss and the gradients become sums times a factor, and other results are stacked. With `parts`
/// sums are of so many, each of as many micro-batches, which are added as a binary tree.
void accumulate(mlir::func::FuncOp function, const Graph &graph, const Entry &entry, int64_t parts, double factor,
                llvm::MutableArrayRef<mlir::Value> gradients);

/// The same for a stage that gets gradients from the next one: what stands before it does is a loop of its own, at most
/// `ahead` - 1 iterations ahead of the other. The function has no results.
void accumulateApart(mlir::func::FuncOp function, const Graph &graph, const Entry &entry, int64_t ahead,
                     llvm::MutableArrayRef<mlir::Value> gradients);

} // namespace kiln
