// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel training: several replicas of a model take a step together, each with its part of the batch.
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// A gradient. If `layers` is set, each replica gets its shard of each copy, and `layers` axes of layers precede a
/// copy's axes.
struct ReplicaGradient {
  mlir::Value value;
  std::optional<unsigned> layers;
};

/// Whether the optimiser state of a copy of a parameter is sharded among replicas: the number of elements must be large
/// and divisible by the number of replicas.
bool isSharedOut(mlir::RankedTensorType parameter, int64_t replicas);

/// Returns the replica's own shard of a tensor with one shard per replica along `axis`.
mlir::Value partOfReplica(mlir::kiln::GradientBuilder &b, mlir::Value parts, unsigned axis);

/// For sums in a fixed order (kiln.reduction_parts) over all micro-batches of all replicas, returns the number of
/// consecutive parts with equal numbers of micro-batches that a replica has; 0 if the order is not fixed.
int64_t countBatchParts(mlir::func::FuncOp function, const Entry &entry);

/// Replaces a replica's sums in such an order by the mean over all micro-batches of all replicas: gathers the sums of
/// all replicas and adds them as a tree.
void averageInOrder(mlir::func::FuncOp function, int64_t replicas, int64_t microBatches,
                    llvm::MutableArrayRef<ReplicaGradient> gradients);

/// Replaces the loss and the gradients by their means over the replicas. A gradient's all-reduce starts where it is
/// computed, also in loops over layers, and overlaps with the computation of others. All are finished before the
/// function returns.
void averageOverReplicas(mlir::func::FuncOp function, int64_t replicas,
                         llvm::MutableArrayRef<ReplicaGradient> gradients);

} // namespace kiln
