// SPDX-License-Identifier: Apache-2.0
//
// Lowers an imported model to its kernels. Compiling, tuning and inspecting a model share this.
#pragma once

#include "compiler/pipeline/ImportModel.h"
#include "targets/target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace kiln {

/// The choices that a user has about kernels. Tuning a library and building it must use the same choices.
struct LoweringOptions {
  /// Targets with tensor cores may round f32 factors to tf32. Other targets compute in f32.
  bool tf32 = false;
  /// Kernels are batch-invariant: a row's results are bit-identical in each call, whatever else the call computes. An
  /// error for targets that do not support it.
  bool batchInvariant = false;
  /// Which weights are quantised. importModel does it.
  StorageChoices weights;
  /// How a model is split among ranks that call entries together, each with a part of the weights.
  /// importModel does it.
  RankChoices ranks;
  /// Rows of sliding states stay in place, on CPUs. All targets of a library must agree: if one does not support it,
  /// none does it.
  bool slides = true;
  /// Evaluates the module after the import and after every pass. An error names the pass that changed a result.
  bool verifyPasses = false;
};

/// Returns importModel's module with these choices, whose passes are verified if that is asked for.
mlir::OwningOpRef<mlir::ModuleOp> importForLowering(const Graph &graph, mlir::MLIRContext &context,
                                                    llvm::StringRef modelName, const LoweringOptions &options);

/// Runs the phases after importModel with the layouts that the target wants. `configure` may make the pass manager
/// print the IR.
mlir::LogicalResult lowerToKernels(mlir::ModuleOp module, const Target &target, const LoweringOptions &options,
                                   llvm::function_ref<void(mlir::PassManager &)> configure = nullptr);

} // namespace kiln
