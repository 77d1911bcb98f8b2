// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/Pipeline.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::kiln {

void buildRecognition(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass()); // folds; one form for what follows to match
  passes.addPass(createCSEPass());           // the same projection or table once
  passes.addNestedPass<func::FuncOp>(createRecognizeAttention());
}

void buildPipeline(OpPassManager &passes, const PipelineOptions &options) {
  // Optimise the model.
  buildRecognition(passes); // the projections of attention are joined next
  passes.addPass(createMergeProjections());
  if (options.slides)
    passes.addPass(createSlideStates());     // before anything that depends on the target
  passes.addPass(createCanonicalizerPass()); // what became dead
  passes.addPass(
      createLayOutWeights(options.target.weightTile, options.target.wordBytes)); // a joined weight has one layout
  passes.addPass(createDeriveWeights()); // of weights that are stored as they are

  // Form kernels.
  passes.addPass(createFormKernels(
      {options.target.mayJoin, options.target.writesStates, options.target.normsSingleRows, options.target.joinsSums},
      options.normMoments));
  passes.addPass(createCanonicalizerPass()); // views of views
  passes.addPass(createCSEPass());           // views and extents of different calls
  passes.addNestedPass<func::FuncOp>(createHoistInvariants());
  passes.addPass(createVerifyKernels());
  passes.addPass(createRecordWork());
  LowerKernelsOptions lowering;
  lowering.ordered = options.ordered;
  passes.addNestedPass<func::FuncOp>(createLowerKernels(lowering));
  passes.addNestedPass<func::FuncOp>(createCSEPass()); // index arithmetic inside the regions
  if (options.tf32)
    passes.addNestedPass<func::FuncOp>(createAllowTf32());
  if (options.ordered)
    passes.addNestedPass<func::FuncOp>(createKeepOrder());
  passes.addPass(createShareKernels()); // after lowering: different ops may come out equal

  // Plan memory.
  passes.addPass(createPlanMemory());
  VerifyKernelsOptions lowered;
  lowered.lowered = true;
  passes.addPass(createVerifyKernels(lowered));
  passes.addPass(createRecordKeys()); // before the target's passes: measurements do not depend on them
  if (options.target.addKernelPasses)
    options.target.addKernelPasses(passes); // last: sharing and plan do not depend on them
}

void registerPipelineDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect, KilnDialect, linalg::LinalgDialect,
                  math::MathDialect, tensor::TensorDialect>();
}

void registerPasses() { registerKilnPasses(); }

} // namespace mlir::kiln
