// SPDX-License-Identifier: Apache-2.0
//
// From an imported model to its kernels: what compiling, tuning and looking at a model have in common.
#pragma once

#include "compiler/frontend/Import.h"
#include "compiler/frontend/StoreWeights.h"
#include "targets/target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

namespace kiln {

/// The dialects of all stages. The context must be made without threads: kernels are compiled in forked children.
void loadDialects(mlir::MLIRContext &context);

/// What a user may choose of the kernels' forms. Tuning a library and building it takes the same choice.
struct LoweringOptions {
  /// Norms take mean and variance from moments of panels, which the contractions before them compute beside their sums.
  bool normMoments = false;
  /// Targets with tensor cores for tf32 may round factors of f32 to it; the others compute as ever.
  bool tf32 = false;
  /// A row's results are the same to the bit in each call, whatever else the call computes; an error for targets that
  /// cannot promise that.
  bool ordered = false;
  /// Which weights are stored in fewer bits; the import, before, does it.
  StorageChoices weights;
  /// How many ranks call entries together, each with a part of the weights; the import, before, does it.
  RankChoices ranks;
  /// States that slide by some rows stay where they are, on CPUs. All targets of a library do it alike: with one that
  /// cannot, none does.
  bool slides = true;
  /// The module is evaluated after import and after every pass; the pass that changes a result fails, by its name.
  bool verifyPasses = false;
};

/// Runs the pipeline with the layouts that the target wants. `configure` may ask the pass manager to print.
mlir::LogicalResult lowerToKernels(mlir::ModuleOp module, const Target &target, const LoweringOptions &options,
                                   llvm::function_ref<void(mlir::PassManager &)> configure = nullptr);

} // namespace kiln
