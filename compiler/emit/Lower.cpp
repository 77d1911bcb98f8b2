// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/Lower.h"

#include "compiler/transforms/Pipeline.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace kiln {

void loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  registry.insert<LLVM::LLVMDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

LogicalResult lowerToKernels(ModuleOp module, const Target &target, const LoweringOptions &options,
                             llvm::function_ref<void(PassManager &)> configure) {
  PassManager passes(module.getContext());
  if (configure)
    configure(passes);
  mlir::kiln::PipelineOptions pipeline;
  pipeline.weightTile = [&](int64_t outputs, int64_t inputs) { return target.weightTile(outputs, inputs); };
  pipeline.normMoments = options.normMoments;
  mlir::kiln::buildPipeline(passes, pipeline);
  return passes.run(module);
}

} // namespace kiln
