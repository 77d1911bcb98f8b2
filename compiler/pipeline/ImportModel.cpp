// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/ImportModel.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/Training.h"
#include "compiler/pipeline/ParallelPasses.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

/// Whether the derive and parallel phases change the module.
static bool needsDerivation(ModuleOp module, const RankChoices &ranks) {
  return ranks.isSplit() || ranks.stages > 1 || llvm::any_of(module.getOps<func::FuncOp>(), [](func::FuncOp entry) {
           return entry->hasAttr(kd::trainingAttrName) || entry->hasAttr(kd::batchedAttrName);
         });
}

OwningOpRef<ModuleOp> importModel(const Graph &graph, MLIRContext *context, StringRef modelName,
                                  const StorageChoices &weights, const RankChoices &ranks, ConfigurePasses configure) {
  if (const std::string wrong = checkBuilt(ranks); !wrong.empty()) {
    emitError(UnknownLoc::get(context)) << wrong;
    return {};
  }
  OwningOpRef<ModuleOp> module = importGraph(graph, context, modelName);
  if (!module)
    return {};
  kd::PipelineOptions options;
  options.weights = weights;
  options.ranks = ranks;
  const bool isDerived = needsDerivation(*module, ranks);
  PassManager passes(context);
  kd::buildImportPhase(passes, options);
  if (isDerived) {
    kd::buildDerivePhase(passes, options);
    kd::buildParallelPhase(passes, options);
  } else {
    if (weights.quantizesRows)
      passes.addPass(kd::createQuantizeRows());
    kd::addProcesses(passes, ranks);
  }
  const bool storesWeights = !weights.isPlain() || module->getOperation()->hasAttr(kd::statedStorageAttrName);
  if (configure && (isDerived || storesWeights))
    configure(*module, passes);
  if (failed(passes.run(*module)))
    return {};
  if (isDerived)
    module->getOperation()->setAttr(kd::derivedAttrName, UnitAttr::get(context));
  return module;
}

void buildLowering(OpPassManager &passes, ModuleOp module, const kd::PipelineOptions &options) {
  if (module->hasAttr(kd::derivedAttrName))
    kd::buildSimplification(passes);
  else
    kd::buildRecognition(passes);
  kd::buildFusePhase(passes, options);
  kd::buildLowerPhase(passes, options);
  kd::buildPlanPhase(passes, options);
}

} // namespace kiln
