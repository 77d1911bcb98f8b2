// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/Pipeline.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/pipeline/ParallelPasses.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::kiln {

void buildSimplification(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

void buildRecognition(OpPassManager &passes) {
  buildSimplification(passes);
  passes.addNestedPass<func::FuncOp>(createRecognizeAttention());
}

void buildImportPhase(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(createJoinWeights()); // first: a joined weight has one storage format
  passes.addPass(createStoreWeights(options.weights));
}

void buildDerivePhase(OpPassManager &passes, const PipelineOptions &options) {
  const ::kiln::RankChoices &ranks = options.ranks;
  buildRecognition(passes); // first: attention must not be sharded, differentiated or batched op by op
  addSharding(passes, ranks);
  if (options.weights.quantizesRows)
    passes.addPass(createQuantizeRows()); // after sharding: each rank quantises its own rows
  addProcesses(passes, ranks);
  passes.addPass(createDifferentiate());
  passes.addPass(createAccumulate());
  addGradientSums(passes, ranks);
  passes.addPass(createAddOptimizer());
  passes.addPass(createBatchEntries());
}

void buildParallelPhase(OpPassManager &passes, const PipelineOptions &options) {
  addDistribution(passes, options.ranks);
}

void buildFusePhase(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(createMergeProjections()); // of recognised attention; after differentiation
  if (options.slides)
    passes.addPass(createSlideStates());     // before anything that depends on the target
  passes.addPass(createCanonicalizerPass()); // dead ops
  passes.addPass(createLayOutWeights(options.target.weightTile, options.target.interleaveBytes)); // after merging
  passes.addPass(createDeriveWeights()); // after layout: only weights without one are inputs
  if (!options.target.sortsOnHost)
    passes.addPass(createExpandSorts()); // just before kernels: their ops are one thing to all other passes
  passes.addPass(createFormKernels(GroupingRules{options.target.mayJoin, options.target.writesStates,
                                                 options.target.normsSingleRows, options.target.joinsSums,
                                                 options.target.callsGroups, options.target.runsScans}));
  buildSimplification(passes); // views of views; equal views and dimensions of different calls
  passes.addNestedPass<func::FuncOp>(createHoistInvariants());
  passes.addPass(createVerifyKernels());
  passes.addPass(createRecordWork());
}

void buildLowerPhase(OpPassManager &passes, const PipelineOptions &options) {
  LowerKernelsOptions lowering;
  lowering.batchInvariant = options.batchInvariant;
  passes.addNestedPass<func::FuncOp>(createLowerKernels(lowering));
  passes.addNestedPass<func::FuncOp>(createCSEPass()); // index arithmetic inside the regions
  if (options.tf32)
    passes.addNestedPass<func::FuncOp>(createAllowTf32());
  if (options.batchInvariant)
    passes.addNestedPass<func::FuncOp>(createKeepOrder());
  passes.addPass(createShareKernels()); // after lowering: different ops may lower to equal kernels
}

void buildPlanPhase(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(createPlanMemory());
  VerifyKernelsOptions lowered;
  lowered.lowered = true;
  passes.addPass(createVerifyKernels(lowered));
  passes.addPass(createRecordKeys()); // before the target's passes: keys must not depend on them
  if (options.target.addKernelPasses)
    options.target.addKernelPasses(passes); // last: kernel sharing and the memory plan do not depend on them
}

void buildPipeline(OpPassManager &passes, const PipelineOptions &options) {
  buildImportPhase(passes, options);
  buildDerivePhase(passes, options);
  buildParallelPhase(passes, options);
  buildSimplification(passes); // what entries and processes were derived from was canonical
  buildFusePhase(passes, options);
  buildLowerPhase(passes, options);
  buildPlanPhase(passes, options);
}

void registerPipelineDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect, KilnDialect, linalg::LinalgDialect,
                  math::MathDialect, tensor::TensorDialect>();
}

void registerPasses() {
  registerKilnPasses();
  registerParallelPasses();
  registerKilnTrainingPasses();
}

} // namespace mlir::kiln

namespace kiln {

void loadDialects(mlir::MLIRContext &context) {
  mlir::DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  registry.insert<mlir::LLVM::LLVMDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

} // namespace kiln
