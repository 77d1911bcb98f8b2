// SPDX-License-Identifier: Apache-2.0
//
// Builds the pass pipeline, from the module as imported to kernels that a target compiles. It has six phases:
//
//   import        weights get their storage formats
//   derive        attention is recognised, and tensors are sharded among ranks; entries get gradients, updates and
//                 functions for several sequences
//   parallelise   sums over ranks get their order, and entries are cut into pipeline stages
//   fuse          projections are merged, weights laid out and kernels formed
//   lower         kernels become linalg
//   plan          tensors get their places in memory
//
// Compiling a model stops after the third phase, to describe the entries that the library has (ImportModel.h).
#pragma once

#include "compiler/pipeline/RankChoices.h"
#include "compiler/training/Passes.h"
#include "compiler/transforms/Passes.h"
#include "compiler/transforms/StoreWeights.h"
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
  /// Which weights are quantised.
  ::kiln::StorageChoices weights = {};
  /// How the model is distributed among processes.
  ::kiln::RankChoices ranks = {};
};

/// Adds passes that fold, make canonical forms for the patterns that follow, and deduplicate projections, tables and
/// quantised rows.
void buildSimplification(OpPassManager &passes);

/// Adds the passes after which every attention pattern is one op: in the derive phase, or before the fuse phase of a
/// module that needs no other pass of it.
void buildRecognition(OpPassManager &passes);

// The phases, in their order.
void buildImportPhase(OpPassManager &passes, const PipelineOptions &options);
void buildDerivePhase(OpPassManager &passes, const PipelineOptions &options);
void buildParallelPhase(OpPassManager &passes, const PipelineOptions &options);
void buildFusePhase(OpPassManager &passes, const PipelineOptions &options);
void buildLowerPhase(OpPassManager &passes, const PipelineOptions &options);
void buildPlanPhase(OpPassManager &passes, const PipelineOptions &options);

/// Adds all passes, in all phases.
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
