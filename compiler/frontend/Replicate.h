// SPDX-License-Identifier: Apache-2.0
//
// Data parallel training: several replicas of a model take a step together, each with its part of the batch.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// Makes of the loss and of the gradients their means over the replicas. The sum over these begins where a gradient is
/// made, in loops over layers, too, and goes on while others are made; all are finished before the function's return.
void averageOverReplicas(mlir::func::FuncOp function, int64_t replicas, llvm::MutableArrayRef<mlir::Value> gradients);

} // namespace kiln
