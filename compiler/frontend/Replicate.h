// SPDX-License-Identifier: Apache-2.0
//
// Data parallel training: several replicas of a model take a step together, each with its part of the batch.
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// A gradient. With `layers`, how many axes of those it has before a copy's, each replica gets its part of each copy.
struct ReplicaGradient {
  mlir::Value value;
  std::optional<unsigned> layers;
};

/// Whether replicas share out what optimisers keep of a copy of a parameter: that they divide, and that is large.
bool isSharedOut(mlir::RankedTensorType parameter, int64_t replicas);

/// The replica's own part, of one for each along an axis.
mlir::Value partOfReplica(mlir::kiln::GradientBuilder &b, mlir::Value parts, unsigned axis);

/// Of sums over all micro-batches of all replicas whose order is fixed (kiln.sum_parts), how many parts a replica has,
/// each of as many micro-batches, one behind another; 0: their order is not.
int64_t countBatchParts(mlir::func::FuncOp function, const Entry &entry);

/// Of such sums of a replica the mean over all micro-batches of all of them, by gathering all and adding them as a
/// tree.
void averageInOrder(mlir::func::FuncOp function, int64_t replicas, int64_t microBatches,
                    llvm::MutableArrayRef<ReplicaGradient> gradients);

/// Makes of the loss and of the gradients their means over the replicas. The sum over these begins where a gradient is
/// made, in loops over layers, too, and goes on while others are made; all are finished before the function's return.
void averageOverReplicas(mlir::func::FuncOp function, int64_t replicas,
                         llvm::MutableArrayRef<ReplicaGradient> gradients);

} // namespace kiln
