// SPDX-License-Identifier: Apache-2.0
//
// Training with pipeline parallelism: what a stage computes together with the other stages (kiln-cut-stages).
#pragma once

#include <string>

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// Returns the parameters that a function reads, by name.
llvm::StringMap<mlir::kiln::ParameterOp> findParameters(mlir::func::FuncOp function);

/// Checks that no stage has a weight that training changes only on other stages.
mlir::LogicalResult checkUpdates(mlir::ModuleOp module);

/// The parameters of an entry that the stages with each role have.
class TrainedStages {
public:
  /// A single stage, which has all parameters.
  TrainedStages() = default;
  /// `roles`: the entry's functions, before differentiation.
  explicit TrainedStages(llvm::ArrayRef<mlir::func::FuncOp> roles);

  int64_t count() const { return stages; }
  bool areSeveral() const { return stages > 1; }
  bool isLast(mlir::func::FuncOp function) const;
  /// Returns 1 + the number of iterations that a stage with the function's role may be ahead of the gradients.
  int64_t mostAhead(mlir::func::FuncOp function) const;
  bool isRead(llvm::StringRef parameter) const { return holders.contains(parameter); }
  /// Whether the function's role is the one that counts the parameter for the norm, among the roles that have it.
  bool isCounted(mlir::func::FuncOp function, llvm::StringRef parameter) const;
  /// Returns the sum of the gradients of all stages that have the parameter. All of them get the same bits.
  mlir::Value addUp(mlir::kiln::GradientBuilder &b, mlir::func::FuncOp function, llvm::StringRef parameter,
                    mlir::Value gradient) const;
  /// Returns the sum of a number over all stages, if there are several.
  mlir::Value addUp(mlir::kiln::GradientBuilder &b, mlir::Value number) const;

private:
  int64_t stages = 1;
  llvm::StringMap<unsigned> holders; // parameter -> number of roles that have it
};

} // namespace kiln
