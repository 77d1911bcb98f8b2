// SPDX-License-Identifier: Apache-2.0
//
// Training with pipeline parallelism: what a stage computes together with the other stages (kiln-cut-stages). An entry
// without stages is computed by one process alone.
#pragma once

#include <string>

#include "compiler/dialect/Training.h"
#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// Returns the parameters that a function reads, by name.
llvm::StringMap<mlir::kiln::ParameterOp> findParameters(mlir::func::FuncOp function);

/// Checks that no stage has a weight that training changes only on other stages.
mlir::LogicalResult checkUpdates(mlir::ModuleOp module);

/// Returns the number of pipeline stages that compute an entry together, of which the function is the part of one role.
int64_t countStages(mlir::func::FuncOp function);

/// Returns the entry of which the function is the part of one role, or its own name.
llvm::StringRef entryOf(mlir::func::FuncOp function);

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

} // namespace kiln
