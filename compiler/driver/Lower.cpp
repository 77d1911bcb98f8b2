// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/Lower.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/StoredParts.h"
#include "compiler/verify/PassVerifier.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

using namespace mlir;

namespace kiln {

/// Prints what was not evaluated. Diagnostics below errors are not shown.
static void noteExtents(const verify::PassVerifier &verifier) {
  if (verifier.calls().isSmallestOnly)
    llvm::errs() << "note: passes are verified with the smallest extents only: larger ones take more than "
                 << static_cast<int64_t>(verify::VerifyOptions().mostOperations) << " operations\n";
}

/// Prints from which pass on results were not compared.
static void noteDistribution(const verify::PassVerifier &verifier) {
  if (!verifier.stoppedAt().empty())
    llvm::errs() << "note: passes that derive entries are verified before " << verifier.stoppedAt()
                 << ": from then on several processes compute the results together\n";
}

/// Whether the target supports the storage formats of the module's quantised weights.
static LogicalResult checkWeights(ModuleOp module, const TargetInfo &target) {
  if (target.hasStoredWeights)
    return success();
  WalkResult result = module.walk([&](mlir::kiln::ParameterOp op) {
    auto storage = op.getStorageAttr();
    if (!storage)
      return WalkResult::advance();
    op.emitError() << "target " << target.name << ": unsupported storage of weights; expected f32, got "
                   << mlir::kiln::getFormat(storage).name << " of " << op.getSources()[0];
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Whether the target has batch-invariant kernels, if they are required.
static LogicalResult checkBatchInvariance(ModuleOp module, const TargetInfo &target, bool batchInvariant) {
  if (!batchInvariant || target.hasOrder)
    return success();
  return module.emitError() << "target " << target.name
                            << ": no batch-invariant kernels; expected a CPU with --batch-invariant";
}

/// Whether the module has batched entries, whose results must equal those of single-sequence entries.
static bool hasBatches(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(),
                      [](func::FuncOp function) { return function->hasAttr(mlir::kiln::batchAttrName); });
}

OwningOpRef<ModuleOp> importForLowering(const Graph &graph, MLIRContext &context, StringRef modelName,
                                        const LoweringOptions &options) {
  std::optional<verify::PassVerifier> verifier;
  Location location = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = importModel(graph, &context, modelName, options.weights, options.ranks,
                                             [&](ModuleOp imported, PassManager &passes) {
                                               if (!options.verifyPasses)
                                                 return;
                                               location = imported.getLoc();
                                               verifier.emplace(imported);
                                               verifier->attach(passes);
                                             });
  if (verifier)
    noteDistribution(*verifier);
  if (!verifier || verifier->difference().empty())
    return module;
  emitError(location) << verifier->difference();
  return {};
}

LogicalResult lowerToKernels(ModuleOp module, const Target &target, const LoweringOptions &options,
                             llvm::function_ref<void(PassManager &)> configure) {
  if (failed(checkWeights(module, target.info())) ||
      failed(checkBatchInvariance(module, target.info(), options.batchInvariant)))
    return failure();
  PassManager passes(module.getContext());
  if (configure)
    configure(passes);
  mlir::kiln::PipelineOptions pipeline;
  pipeline.target = target.hooks();
  pipeline.tf32 = options.tf32 && target.info().hasTf32;
  pipeline.batchInvariant = options.batchInvariant || (target.info().hasOrder && hasBatches(module));
  pipeline.slides = options.slides && !target.hooks().writesStates;
  buildLowering(passes, module, pipeline);
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
