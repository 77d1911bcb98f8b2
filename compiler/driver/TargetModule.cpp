// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/TargetModule.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/hostcode/ValueChecks.h"
#include "compiler/library/CustomFunctions.h"
#include "compiler/library/DescribeParallel.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "runtime/src/core/model.h"

using namespace mlir;

namespace kiln {

/// Imports the graph for a target.
static OwningOpRef<ModuleOp> importGraph(MLIRContext &context, const Graph &graph, const LoweringOptions &options,
                                         const TargetInfo &target, LoweredTargets &lowered) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      return failure(); // to the next handler
    if (!llvm::is_contained(lowered.remarks, diagnostic.str()))
      lowered.remarks.push_back(diagnostic.str());
    return success();
  });
  LoweringOptions lowering = options;
  lowering.ranks.sumsHalf = target.memorySpace != KILN_MEMORY_HOST; // as NCCL sums
  return importForLowering(graph, context, lowered.model.name, lowering);
}

/// Describes the value checks and the shards. Both are the same for all targets; checks also for all ranks and stages.
static void describeCalls(const Graph &graph, const LoweringOptions &options, ModuleOp module, ModelInterface &model) {
  OwningOpRef<ModuleOp> whole;
  if (options.ranks.isSplit() || options.ranks.stages > 1)
    whole = importModel(graph, module.getContext(), model.name, options.weights);
  addValueChecks(whole ? *whole : module, model);
  describeParallel(module, model);
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
static LogicalResult runPasses(ModuleOp module, const Target &target, const CompileContext &context) {
  LoweringOptions lowering = context.options.lowering;
  lowering.slides = llvm::none_of(context.targets, [](const Target *each) { return each->hooks().writesStates; });
  if (context.options.dumpDirectory.empty())
    return lowerToKernels(module, target, lowering);
  const std::string folder = context.options.dumpDirectory + "/" + target.info().name;
  std::string imported;
  llvm::raw_string_ostream(imported) << module << "\n";
  if (failed(context.write(folder + "/import.mlir", imported))) // this also creates the folder
    return failure();
  return lowerToKernels(module, target, lowering, [&](PassManager &passes) {
    passes.enableIRPrintingToFileTree([](Pass *, Operation *) { return false; },
                                      [](Pass *, Operation *) { return true; }, true, true, false, folder);
  });
}

/// Appends the imported module of a target.
static LogicalResult importForTarget(const CompileContext &context, const Target &target, LoweredTargets &lowered) {
  TargetModule &result = lowered.modules.emplace_back();
  result.target = &target;
  result.context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  loadDialects(*result.context);
  result.module = importGraph(*result.context, context.graph, context.options.lowering, target.info(), lowered);
  if (!result.module)
    return failure();
  describeCalls(context.graph, context.options.lowering, *result.module, lowered.model);
  return success();
}

static std::string formingStage(const Target &target) { return target.info().name + " forming of kernels"; }

FailureOr<LoweredTargets> importModule(CompileContext &context) {
  LoweredTargets lowered{context.described, {}, {}};
  const Target &target = *context.targets.front();
  if (failed(context.timed(formingStage(target), [&] { return importForTarget(context, target, lowered); })))
    return failure();
  return lowered;
}

FailureOr<LoweredTargets> lowerAll(CompileContext &context) {
  LoweredTargets lowered{context.described, {}, {}};
  for (const Target *target : context.targets) {
    LogicalResult result = context.timed(formingStage(*target), [&] {
      if (failed(importForTarget(context, *target, lowered)))
        return failure();
      ModuleOp module = *lowered.modules.back().module;
      if (failed(runPasses(module, *target, context)))
        return failure();
      describeSlides(module, lowered.model);
      markCalledFunctions(module, lowered.model);
      return success();
    });
    if (failed(result))
      return failure();
  }
  return lowered;
}

FailureOr<LoweredTargets> formKernels(CompileContext &context) {
  FailureOr<LoweredTargets> lowered = lowerAll(context);
  if (succeeded(lowered))
    for (TargetModule &each : lowered->modules)
      each.forms = addShapeVariants(*each.module, *each.target);
  return lowered;
}

std::string printModules(LoweredTargets &lowered) {
  std::string text;
  for (TargetModule &each : lowered.modules)
    llvm::raw_string_ostream(text) << *each.module << "\n";
  return text;
}

std::string librarySymbol(StringRef model, const Target &target, StringRef function) {
  std::string isa = target.name().str();
  std::replace(isa.begin(), isa.end(), '-', '_');
  return (model + "_" + isa + "_" + function).str();
}

} // namespace kiln
