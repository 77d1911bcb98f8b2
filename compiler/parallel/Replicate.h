// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel training: several replicas of a model take a step together, each with its part of the batch.
#pragma once

#include "compiler/dialect/Training.h"
#include "compiler/dialect/gradients/GradientBuilder.h"

namespace kiln {

/// Returns the replica's own shard of a tensor with one shard per replica along `axis`.
mlir::Value partOfReplica(mlir::kiln::GradientBuilder &b, mlir::Value parts, unsigned axis);

/// For sums in a fixed order (kiln.reduction_parts) over all micro-batches of all replicas, returns the number of
/// consecutive parts with equal numbers of micro-batches that a replica has; 0 if the order is not fixed.
int64_t countBatchParts(mlir::func::FuncOp function, const mlir::kiln::TrainingRequest &request);

} // namespace kiln
