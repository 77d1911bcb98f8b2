// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/Pipeline.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::kiln {

void buildRecognition(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass()); // folds, and canonical forms for the patterns that follow
  passes.addPass(createCSEPass());           // deduplicates projections and tables
  passes.addNestedPass<func::FuncOp>(createRecognizeAttention());
}

void buildPipeline(OpPassManager &passes, const PipelineOptions &options) {
  // Optimise the model.
  buildRecognition(passes); // MergeProjections needs attention ops
  passes.addPass(createMergeProjections());
  if (options.slides)
    passes.addPass(createSlideStates());     // before anything that depends on the target
  passes.addPass(createCanonicalizerPass()); // dead ops
  passes.addPass(createLayOutWeights(options.target.weightTile, options.target.interleaveBytes)); // after merging
  passes.addPass(createDeriveWeights()); // after layout: only weights without one are inputs

  // Form kernels.
  passes.addPass(createFormKernels(GroupingRules{options.target.mayJoin, options.target.writesStates,
                                                 options.target.normsSingleRows, options.target.joinsSums}));
  passes.addPass(createCanonicalizerPass()); // views of views
  passes.addPass(createCSEPass());           // equal views and dimensions of different calls
  passes.addNestedPass<func::FuncOp>(createHoistInvariants());
  passes.addPass(createVerifyKernels());
  passes.addPass(createRecordWork());
  LowerKernelsOptions lowering;
  lowering.batchInvariant = options.batchInvariant;
  passes.addNestedPass<func::FuncOp>(createLowerKernels(lowering));
  passes.addNestedPass<func::FuncOp>(createCSEPass()); // index arithmetic inside the regions
  if (options.tf32)
    passes.addNestedPass<func::FuncOp>(createAllowTf32());
  if (options.batchInvariant)
    passes.addNestedPass<func::FuncOp>(createKeepOrder());
  passes.addPass(createShareKernels()); // after lowering: different ops may lower to equal kernels

  // Plan memory.
  passes.addPass(createPlanMemory());
  VerifyKernelsOptions lowered;
  lowered.lowered = true;
  passes.addPass(createVerifyKernels(lowered));
  passes.addPass(createRecordKeys()); // before the target's passes: keys must not depend on them
  if (options.target.addKernelPasses)
    options.target.addKernelPasses(passes); // last: kernel sharing and the memory plan do not depend on them
}

void registerPipelineDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect, KilnDialect, linalg::LinalgDialect,
                  math::MathDialect, tensor::TensorDialect>();
}

void registerPasses() {
  registerKilnPasses();
  registerKilnParallelPasses();
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
