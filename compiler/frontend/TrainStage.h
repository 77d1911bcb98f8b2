// SPDX-License-Identifier: Apache-2.0
//
// Trainings over the stages of a pipeline: what a stage does together with the others (kiln-cut-stages).
#pragma once

#include <string>

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// The parameters that a function reads, by their names.
llvm::StringMap<mlir::kiln::ParameterOp> findParameters(mlir::func::FuncOp function);

/// That no stage has a weight which a training changes on other stages alone.
mlir::LogicalResult checkUpdates(mlir::ModuleOp module);

/// Which parameters of an entry stages with each role have.
class TrainedStages {
public:
  /// One stage, which has all.
  TrainedStages() = default;
  /// `roles`: the entry's functions, before they are differentiated.
  explicit TrainedStages(llvm::ArrayRef<mlir::func::FuncOp> roles);

  int64_t count() const { return stages; }
  bool areSeveral() const { return stages > 1; }
  bool isLast(mlir::func::FuncOp function) const;
  /// How many iterations a stage with the function's role may be ahead of the gradients, and one more.
  int64_t mostAhead(mlir::func::FuncOp function) const;
  bool isRead(llvm::StringRef parameter) const { return holders.contains(parameter); }
  /// Whether the function's role is the one among those that have the parameter to count it.
  bool isCounted(mlir::func::FuncOp function, llvm::StringRef parameter) const;
  /// The sum of the gradients of all stages that have the parameter, of which each gets the same bits.
  mlir::Value addUp(mlir::kiln::GradientBuilder &b, mlir::func::FuncOp function, llvm::StringRef parameter,
                    mlir::Value gradient) const;
  /// The sum of a number that each stage has, if there are several.
  mlir::Value addUp(mlir::kiln::GradientBuilder &b, mlir::Value number) const;

private:
  int64_t stages = 1;
  llvm::StringMap<unsigned> holders; // parameter -> how many roles have it
};

} // namespace kiln
