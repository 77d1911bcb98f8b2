// SPDX-License-Identifier: Apache-2.0
//
// A function for each emit form, which calls the stages that the form needs:
// 1. Check the request and describe the interface from the graph (CompileContext.h).
// 2. For each instruction set: import, optimise and form kernels (TargetModule.h).
// 3. Choose schedules, and compile the kernels of all instruction sets (KernelStages.h).
// 4. Emit the entry-point glue of each (HostStage.h).
// 5. Combine everything with the run time in one archive, with the symbols renamed; write the headers and the manifest
//    (LibraryStage.h).
#include "compiler/driver/Compile.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/driver/LibraryStage.h"
#include "compiler/pipeline/ImportModel.h"

using namespace mlir;

namespace kiln {

/// Computes the calls and expected results of the self-test from the imported model, before any target changes it.
static FailureOr<std::vector<SelfTestTrial>> evaluateTrials(CompileContext &context, const ModelInterface &model) {
  const LoweringOptions &lowering = context.options.lowering;
  MLIRContext imported(MLIRContext::Threading::DISABLED);
  loadDialects(imported);
  OwningOpRef<ModuleOp> module = importModel(context.graph, &imported, model.name, lowering.weights, lowering.ranks);
  if (!module)
    return failure();
  return context.require(evaluateSelfTest(*module, model, lowering.tf32));
}

/// Compiles all parts of a library.
static FailureOr<LibraryParts> compileParts(CompileContext &context) {
  FailureOr<LoweredTargets> lowered = formKernels(context);
  if (failed(lowered))
    return failure();
  FailureOr<std::vector<Variant>> variants = chooseSchedules(context, *lowered);
  if (failed(variants))
    return failure();
  FailureOr<std::vector<SelfTestTrial>> trials = std::vector<SelfTestTrial>();
  if (context.options.hasSelfTest)
    trials = context.timed("self-test", [&] { return evaluateTrials(context, lowered->model); });
  if (failed(trials))
    return failure();
  if (!context.options.loopsOf.empty() &&
      failed(context.timed("loop nests", [&] { return describeLoops(context, *lowered, *variants); })))
    return failure();
  FailureOr<KernelObjects> objects =
      context.timed("kernels", [&] { return compileObjects(context, *lowered, *variants); });
  if (failed(objects))
    return failure();
  FailureOr<HostModule> host = compileGlue(context, *lowered, *objects, *variants);
  if (failed(host))
    return failure();
  std::vector<ObjectFile> kernels = kernelMembers(*variants, std::move(*objects));
  unfoldNestedStacks(lowered->model, *variants);
  return LibraryParts{std::move(lowered->model), std::move(lowered->remarks), std::move(*variants),
                      std::move(kernels),        std::move(*trials),          std::move(*host)};
}

static CompileReport describeModules(LoweredTargets lowered) {
  CompileReport report;
  report.text = printModules(lowered);
  report.model = std::move(lowered.model);
  report.remarks = std::move(lowered.remarks);
  return report;
}

static FailureOr<CompileReport> emitImport(CompileContext &context) {
  FailureOr<LoweredTargets> lowered = importModule(context);
  if (failed(lowered))
    return failure();
  return describeModules(std::move(*lowered));
}

static FailureOr<CompileReport> emitLinalg(CompileContext &context) {
  FailureOr<LoweredTargets> lowered = lowerAll(context);
  if (failed(lowered))
    return failure();
  return describeModules(std::move(*lowered));
}

static FailureOr<CompileReport> emitLayout(CompileContext &context) {
  FailureOr<LoweredTargets> lowered = formKernels(context);
  if (failed(lowered))
    return failure();
  CompileReport report;
  report.remarks = std::move(lowered->remarks);
  for (TargetModule &each : lowered->modules) {
    Variant &variant = report.variants.emplace_back();
    variant.target = each.target->info().name;
    if (failed(layOutWeights(each, lowered->model, variant)))
      return failure();
  }
  report.model = std::move(lowered->model);
  unfoldNestedStacks(report.model, report.variants);
  return report;
}

static FailureOr<CompileReport> emitKernelText(CompileContext &context, KernelText form) {
  FailureOr<LoweredTargets> lowered = formKernels(context);
  if (failed(lowered))
    return failure();
  FailureOr<std::vector<Variant>> variants = chooseSchedules(context, *lowered);
  if (failed(variants))
    return failure();
  FailureOr<std::string> text = printAllKernels(context, *lowered, *variants, form);
  if (failed(text))
    return failure();
  CompileReport report;
  report.model = std::move(lowered->model);
  report.variants = std::move(*variants);
  report.remarks = std::move(lowered->remarks);
  report.text = std::move(*text);
  return report;
}

/// Compiles all parts, lets `use` write them or take the report's facts from them, and reports what they have.
static FailureOr<CompileReport>
emitParts(CompileContext &context, function_ref<LogicalResult(CompileContext &, LibraryParts &, CompileReport &)> use) {
  FailureOr<LibraryParts> parts = compileParts(context);
  if (failed(parts))
    return failure();
  CompileReport report;
  if (failed(use(context, *parts, report)))
    return failure();
  report.model = std::move(parts->model);
  report.variants = std::move(parts->variants);
  report.remarks = std::move(parts->remarks);
  report.memoryPlan = std::move(parts->host.memoryPlan);
  return report;
}

static LogicalResult useNothing(CompileContext &, LibraryParts &, CompileReport &) { return success(); }

static LogicalResult writeObjects(CompileContext &context, LibraryParts &parts, CompileReport &) {
  for (const ObjectFile &kernel : parts.kernels)
    if (failed(context.write(context.options.outputDirectory + "/" + kernel.name, kernel.bytes)))
      return failure();
  return success();
}

static LogicalResult reportMembers(CompileContext &context, LibraryParts &parts, CompileReport &report) {
  FailureOr<LibraryMembers> members = context.timed("members", [&] { return joinParts(context, parts); });
  if (failed(members))
    return failure();
  report.members = std::move(members->files);
  report.textBytes = members->textBytes;
  return success();
}

static LogicalResult writeFiles(CompileContext &context, LibraryParts &parts, CompileReport &report) {
  return context.timed("archive", [&]() -> LogicalResult {
    FailureOr<LibraryMembers> members = joinParts(context, parts);
    if (failed(members))
      return failure();
    FailureOr<WrittenLibrary> written = writeLibrary(context, parts.model, parts.variants, std::move(members->files));
    if (failed(written))
      return failure();
    report.textBytes = members->textBytes;
    report.archiveBytes = written->archiveBytes;
    report.libraryFile = std::move(written->file);
    return success();
  });
}

static FailureOr<CompileReport> emit(CompileContext &context) {
  switch (context.options.form) {
  case EmitForm::Library:
    return emitParts(context, writeFiles);
  case EmitForm::Ir:
    return emitImport(context);
  case EmitForm::Linalg:
    return emitLinalg(context);
  case EmitForm::Stmt:
    return emitKernelText(context, KernelText::Stmt);
  case EmitForm::Assembly:
    return emitKernelText(context, KernelText::Assembly);
  case EmitForm::Objects:
    return emitParts(context, writeObjects);
  case EmitForm::Memory:
    return emitParts(context, reportMembers);
  case EmitForm::Layout:
    return emitLayout(context);
  case EmitForm::Nothing:
    break;
  }
  return emitParts(context, useNothing);
}

FailureOr<CompileReport> compileModel(const Graph &graph, const CompileOptions &options, raw_ostream &errors) {
  FailureOr<CompileContext> context = beginCompilation(graph, options, errors);
  if (failed(context))
    return failure();
  FailureOr<CompileReport> report = emit(*context);
  if (succeeded(report))
    report->times = std::move(context->times);
  return report;
}

} // namespace kiln
