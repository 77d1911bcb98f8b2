// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/TargetModule.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/hostcode/ValueChecks.h"
#include "compiler/library/RanksInterface.h"
#include "compiler/object/ReplaceFile.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "targets/registry.h"

using namespace mlir;

namespace kiln {

/// Imports the graph for a target. Remarks are added to the report.
static OwningOpRef<ModuleOp> importFor(MLIRContext &context, const Graph &graph, const LoweringOptions &options,
                                       const TargetInfo &target, CompileReport &report) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      return failure(); // to the next handler
    if (!llvm::is_contained(report.remarks, diagnostic.str()))
      report.remarks.push_back(diagnostic.str());
    return success();
  });
  LoweringOptions lowering = options;
  lowering.ranks.sumsHalf = target.memorySpace != KILN_MEMORY_HOST; // as NCCL sums
  return importForLowering(graph, context, report.model.name, lowering);
}

/// Describes the value checks and the shards. Both are the same for all targets; checks also for all ranks and stages.
static void describeCalls(const Graph &graph, const LoweringOptions &options, ModuleOp module, CompileReport &report) {
  OwningOpRef<ModuleOp> whole;
  if (options.ranks.isSplit() || options.ranks.stages > 1)
    whole = importModel(graph, module.getContext(), report.model.name, options.weights);
  addValueChecks(whole ? *whole : module, report.model);
  describeRanks(module, report.model);
  describeStages(module, report.model);
}

/// Sliding states have room for more rows, which is the same for all targets.
static void describeSlides(ModuleOp module, ModelInterface &model) {
  module.walk([&](mlir::kiln::SlideOp slide) {
    auto state = llvm::find_if(model.states, [&](const StateInterface &each) { return slide.getName() == each.name; });
    assert(state != model.states.end() && "a state of the model");
    state->room = static_cast<int64_t>(slide.getRoom());
  });
  model.placeStates();
}

/// Runs the passes. Each stage is written to the options' folder, if there is one.
static LogicalResult runPasses(ModuleOp module, const Target &target, const CompileOptions &options,
                               raw_ostream &errors) {
  LoweringOptions lowering = options.lowering;
  lowering.slides = llvm::all_of(options.targets, [](const std::string &name) {
    const Target *each = findTarget(name);
    return each && !each->hooks().writesStates;
  });
  if (options.dumpDirectory.empty())
    return lowerToKernels(module, target, lowering);
  const std::string folder = options.dumpDirectory + "/" + target.info().name;
  std::string imported;
  llvm::raw_string_ostream(imported) << module << "\n";
  if (llvm::Error error = writeFile(folder + "/import.mlir", imported)) { // writeFile also creates the folder
    errors << "error: " << llvm::toString(std::move(error)) << "\n";
    return failure();
  }
  return lowerToKernels(module, target, lowering, [&](PassManager &passes) {
    passes.enableIRPrintingToFileTree([](Pass *, Operation *) { return false; },
                                      [](Pass *, Operation *) { return true; }, true, true, false, folder);
  });
}

LogicalResult lowerForTarget(const Graph &graph, const CompileOptions &options, const Target &target,
                             CompileReport &report, TargetModule &lowered, raw_ostream &errors) {
  lowered.target = &target;
  lowered.context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  loadDialects(*lowered.context);
  lowered.module = importFor(*lowered.context, graph, options.lowering, target.info(), report);
  if (!lowered.module)
    return failure();
  ModuleOp module = *lowered.module;
  describeCalls(graph, options.lowering, module, report);
  if (options.form != EmitForm::Ir && failed(runPasses(module, target, options, errors)))
    return failure();
  describeSlides(module, report.model);
  if (options.form == EmitForm::Ir || options.form == EmitForm::Linalg)
    llvm::raw_string_ostream(report.text) << module << "\n";
  else
    lowered.forms = addShapeVariants(module, target);
  return success();
}

} // namespace kiln
