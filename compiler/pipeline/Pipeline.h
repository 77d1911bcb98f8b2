// SPDX-License-Identifier: Apache-2.0
//
// Builds the pass pipeline, from the imported module to kernels that a target compiles.
#pragma once

#include "compiler/parallel/Passes.h"
#include "compiler/transforms/Passes.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "targets/target.h"

namespace mlir::kiln {

struct PipelineOptions {
  /// Decisions of the target.
  ::kiln::TargetHooks target;
  /// Inputs of f32 contractions may be rounded to TF32. For targets that support it.
  bool tf32 = false;
  /// Kernels are batch-invariant: a row's result does not depend on the number of rows. For targets that support it.
  bool batchInvariant = false;
  /// Sliding states are updated in place (kiln.slide). For CPUs.
  bool slides = false;
};

/// Adds the first passes, after which every attention pattern is one op.
void buildRecognition(OpPassManager &passes);

/// Adds all passes.
void buildPipeline(OpPassManager &passes, const PipelineOptions &options);

/// Registers the dialects that a module may contain at any stage of the pipeline.
void registerPipelineDialects(DialectRegistry &registry);

/// Registers all passes, for kiln-opt.
void registerPasses();

} // namespace mlir::kiln

namespace kiln {

/// Loads the dialects of all stages. The context must be created without threads: kernels are compiled in forked
/// children.
void loadDialects(mlir::MLIRContext &context);

} // namespace kiln
