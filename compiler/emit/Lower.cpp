// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/Lower.h"

#include "compiler/transforms/Pipeline.h"
#include "compiler/verify/PassVerifier.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

using namespace mlir;

namespace kiln {

void loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  registry.insert<LLVM::LLVMDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

/// Says what was not evaluated. Diagnostics below errors are not shown.
static void noteExtents(const verify::PassVerifier &verifier) {
  if (verifier.calls().isSmallestOnly)
    llvm::errs() << "note: passes are verified with the smallest extents only: larger ones take more than "
                 << static_cast<int64_t>(verify::VerifyOptions().mostOperations) << " operations\n";
}

LogicalResult lowerToKernels(ModuleOp module, const Target &target, const LoweringOptions &options,
                             llvm::function_ref<void(PassManager &)> configure) {
  PassManager passes(module.getContext());
  if (configure)
    configure(passes);
  mlir::kiln::PipelineOptions pipeline;
  pipeline.target = target.hooks();
  pipeline.normMoments = options.normMoments;
  mlir::kiln::buildPipeline(passes, pipeline);
  std::optional<verify::PassVerifier> verifier;
  if (options.verifyPasses) {
    verifier.emplace(module);
    verifier->attach(passes);
    noteExtents(*verifier);
  }
  LogicalResult result = passes.run(module);
  if (verifier && !verifier->difference().empty())
    return module.emitError() << verifier->difference();
  return result;
}

} // namespace kiln
