// SPDX-License-Identifier: Apache-2.0
//
// What a process computes of a training step that several processes take together, as pipeline stages or as replicas.
// An entry that is not distributed is computed by one process: one stage of one replica.
#pragma once

#include "compiler/dialect/Training.h"
#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// Returns the parameters that a function reads, by name.
llvm::StringMap<mlir::kiln::ParameterOp> findParameters(mlir::func::FuncOp function);

/// Returns the number of pipeline stages that compute an entry together, of which the function is the part of one role.
int64_t countStages(mlir::func::FuncOp function);

/// Whether the function returns the entry's results.
bool isLastStage(mlir::func::FuncOp function);

/// Returns 1 + the number of iterations that a stage with the function's role may be ahead of the gradients.
int64_t mostAhead(mlir::func::FuncOp function);

/// Leaves the parameters that the function's role has, with their copies, and records how many roles have each of them.
/// `roles`: the functions of all roles of the entry.
void selectParameters(mlir::func::FuncOp function, llvm::ArrayRef<mlir::func::FuncOp> roles,
                      mlir::kiln::TrainingRequest &request);

/// Returns the sum of a number over all stages, if there are several.
mlir::Value sumOverStages(mlir::kiln::GradientBuilder &b, mlir::func::FuncOp function, mlir::Value number);

/// Returns the replica's own shard of a tensor with one shard per replica along `axis`.
mlir::Value partOfReplica(mlir::kiln::GradientBuilder &b, mlir::Value parts, unsigned axis);

/// For sums in a fixed order (kiln.reduction_parts) over all micro-batches of all replicas, returns the number of
/// consecutive parts with equal numbers of micro-batches that a replica has; 0 if the order is not fixed.
int64_t countBatchParts(mlir::func::FuncOp function, const mlir::kiln::TrainingRequest &request);

} // namespace kiln
