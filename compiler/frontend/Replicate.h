// SPDX-License-Identifier: Apache-2.0
//
// Data parallel training: several replicas of a model take a step together, each with its part of the batch.
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
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

/// Makes of the loss and of the gradients their means over the replicas. The sum over these begins where a gradient is
/// made, in loops over layers, too, and goes on while others are made; all are finished before the function's return.
void averageOverReplicas(mlir::func::FuncOp function, int64_t replicas,
                         llvm::MutableArrayRef<ReplicaGradient> gradients);

} // namespace kiln
