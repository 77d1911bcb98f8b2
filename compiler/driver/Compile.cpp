// SPDX-License-Identifier: Apache-2.0
//
// 1. Describe the interface from the graph.
// 2. For each instruction set: import, optimise and form kernels (TargetModule.h).
// 3. Compile the kernels of all instruction sets, then emit the entry-point glue of each.
// 4. Combine everything with the runtime in one archive, with the symbols renamed; write the headers and the manifest.
#include "compiler/driver/Compile.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/driver/Budgets.h"
#include "compiler/driver/CheckRanks.h"
#include "compiler/driver/Lower.h"
#include "compiler/driver/TargetModule.h"
#include "compiler/driver/Untuned.h"
#include "compiler/hostcode/HostCode.h"
#include "compiler/hostcode/WeightLayout.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/library/Bindings.h"
#include "compiler/library/Headers.h"
#include "compiler/library/Names.h"
#include "compiler/object/Object.h"
#include "compiler/object/ReplaceFile.h"
#include "compiler/package/Archive.h"
#include "compiler/package/DeriveHere.h"
#include "compiler/package/Descriptor.h"
#include "compiler/package/EmbedWeights.h"
#include "compiler/package/License.h"
#include "compiler/package/PkgConfig.h"
#include "compiler/package/SelfTest.h"
#include "compiler/package/SharedObject.h"
#include "compiler/parallel/CutStages.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "runtime/src/core/model.h"
#include "targets/registry.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/xxhash.h"
#include <chrono>
#include <fmt/format.h>

using namespace mlir;

namespace kiln {

namespace {

/// State shared by the entry-point glue of all entries of a variant.
struct BodyContext {
  TargetModule &lowered;
  Variant &variant;
  const WeightLayout &weights;
  ModuleOp host;
  llvm::StringMap<KernelReference> kernels = {};
  ConstantPool constants = {};
};

class ModelCompiler {
public:
  ModelCompiler(const Graph &graph, const CompileOptions &options, raw_ostream &errors)
      : graph(graph), options(options), errors(errors), hostModule("host", hostContext) {}

  FailureOr<CompileReport> run();

private:
  LogicalResult findTargets();
  std::vector<KernelRequest> requestKernels(MutableArrayRef<TargetModule> modules);
  LogicalResult chooseSchedules(MutableArrayRef<TargetModule> modules);
  LogicalResult printKernels(MutableArrayRef<TargetModule> modules);
  LogicalResult printLoops(MutableArrayRef<TargetModule> modules);
  LogicalResult compileKernels(MutableArrayRef<TargetModule> modules);
  LogicalResult dumpKernels(ArrayRef<KernelRequest> requests);
  FailureOr<WeightLayout> layOutWeights(TargetModule &lowered, Variant &variant);
  LogicalResult compileHost(TargetModule &lowered, Variant &variant);
  FailureOr<EntryCode> compileBody(const EntryInterface &entry, StringRef function, uint32_t role,
                                   BodyContext &context);
  LogicalResult evaluateTrials();
  LogicalResult gatherMembers();
  LogicalResult writeLibrary();
  std::string kernelSymbol(const Target &target, StringRef kernel) const {
    std::string isa = target.name().str();
    std::replace(isa.begin(), isa.end(), '-', '_');
    return report.model.name + "_" + isa + "_" + kernel.str();
  }
  LogicalResult write(const std::string &path, StringRef text) {
    llvm::Error error = writeFile(path, text);
    return error ? fail(std::move(error)) : success();
  }
  LogicalResult fail(const std::string &message) {
    errors << "error: " << message << "\n";
    return failure();
  }
  LogicalResult fail(llvm::Error error) { return fail(llvm::toString(std::move(error))); }
  /// Runs `work` and records the time that it takes.
  LogicalResult timed(const std::string &stage, llvm::function_ref<LogicalResult()> work) {
    const auto begin = std::chrono::steady_clock::now();
    LogicalResult result = work();
    report.times.push_back({stage, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
    return result;
  }

  const Graph &graph;
  const CompileOptions &options;
  raw_ostream &errors;
  CompileReport report;
  std::vector<const Target *> targets;
  std::vector<ObjectFile> runtime, members; // members: those of the archive
  std::vector<SelfTestTrial> trials;
  llvm::SmallSetVector<StringRef, 2> hookPrefixes; // the prefixes of all kernels
  llvm::LLVMContext hostContext;
  llvm::Module hostModule;
};

/// Creates the variants, with a summary of each kernel that lacks the facts that only compilation provides.
LogicalResult ModelCompiler::chooseSchedules(MutableArrayRef<TargetModule> modules) {
  llvm::Expected<ScheduleChooser> chooser = loadChooser(options.tuning);
  if (!chooser)
    return fail(chooser.takeError());
  report.variants.reserve(modules.size());
  std::vector<ChosenVariant> chosen;
  for (TargetModule &lowered : modules) {
    const TargetInfo &info = lowered.target->info();
    Variant &variant = report.variants.emplace_back();
    variant.target = info.name;
    variant.features = info.features;
    variant.memorySpace = info.memorySpace;
    variant.backend = info.backend;
    for (auto function : llvm::make_filter_range(lowered.module->getOps<func::FuncOp>(), isKernel)) {
      KernelSummary &kernel = variant.kernels.emplace_back(chooseSchedule(*chooser, *lowered.target, function));
      if (options.configOf)
        kernel.schedule = options.configOf(lowered.target->compilerOf(function).describe(function));
      kernel.symbol = kernelSymbol(*lowered.target, function.getName());
      if (options.showsCosts)
        kernel.cost = lowered.target->compilerOf(function).printCost(function, kernel.schedule);
    }
    chosen.push_back({variant, *lowered.module, lowered.forms});
  }
  if (std::string untuned = findUntuned(chosen, options.tuning); !untuned.empty())
    return fail(untuned);
  return success();
}

std::vector<KernelRequest> ModelCompiler::requestKernels(MutableArrayRef<TargetModule> modules) {
  std::vector<KernelRequest> requests;
  for (auto [lowered, variant] : llvm::zip_equal(modules, report.variants))
    for (auto [function, kernel] :
         llvm::zip_equal(llvm::make_filter_range(lowered.module->getOps<func::FuncOp>(), isKernel), variant.kernels))
      requests.push_back({function, lowered.target, kernel.symbol, kernel.schedule});
  return requests;
}

LogicalResult ModelCompiler::printKernels(MutableArrayRef<TargetModule> modules) {
  const KernelText form = options.form == EmitForm::Stmt ? KernelText::Stmt : KernelText::Assembly;
  auto texts = ::kiln::printKernels(requestKernels(modules), form, options.kernels, errors);
  if (failed(texts))
    return failure();
  for (const std::string &text : *texts)
    report.text += text + "\n";
  return success();
}

LogicalResult ModelCompiler::printLoops(MutableArrayRef<TargetModule> modules) {
  std::vector<KernelRequest> requests = requestKernels(modules);
  llvm::erase_if(requests, [&](const KernelRequest &kernel) { return kernel.target->name() != options.loopsOf; });
  auto texts = ::kiln::printKernels(requests, KernelText::Loops, options.kernels, errors);
  if (failed(texts))
    return failure();
  for (Variant &variant : report.variants)
    if (variant.target == options.loopsOf)
      for (auto [kernel, text] : llvm::zip_equal(variant.kernels, *texts))
        kernel.loops = std::move(text);
  return success();
}

LogicalResult ModelCompiler::dumpKernels(ArrayRef<KernelRequest> requests) {
  for (auto [form, suffix] : {std::pair(KernelText::Stmt, ".stmt"), std::pair(KernelText::Assembly, ".s")}) {
    auto texts = ::kiln::printKernels(requests, form, options.kernels, errors);
    if (failed(texts))
      return failure();
    for (auto [request, text] : llvm::zip_equal(requests, *texts))
      if (failed(write(options.dumpDirectory + "/" + request.symbol + suffix, text)))
        return failure();
  }
  return success();
}

LogicalResult ModelCompiler::compileKernels(MutableArrayRef<TargetModule> modules) {
  ObjectCache cache(options.cacheFolder, options.maxCacheBytes);
  KernelOptions kernelOptions = options.kernels;
  kernelOptions.cache = &cache;
  std::vector<KernelRequest> requests = requestKernels(modules);
  auto objects = ::kiln::compileKernels(requests, kernelOptions, errors);
  if (failed(objects))
    return failure();
  if (!options.dumpDirectory.empty() && failed(dumpKernels(requests)))
    return failure();
  size_t next = 0;
  for (auto [lowered, variant] : llvm::zip_equal(modules, report.variants))
    for (KernelSummary &summary : variant.kernels) {
      KernelObject &kernel = (*objects)[next++];
      llvm::Expected<uint64_t> bytes = textBytes(kernel.object);
      if (!bytes)
        return fail(bytes.takeError());
      summary.textBytes = *bytes;
      summary.isFallback = kernel.isFallback;
      members.push_back({summary.symbol + ".o", kernel.object});
      lowered.kernels[summary.function] = std::move(kernel);
    }
  return success();
}

FailureOr<WeightLayout> ModelCompiler::layOutWeights(TargetModule &lowered, Variant &variant) {
  FailureOr<WeightLayout> weights = WeightLayout::compute(*lowered.module, report.model);
  if (succeeded(weights)) {
    variant.placements = weights->placements();
    variant.derived = weights->derived();
    variant.packedBytes = weights->bytes();
    variant.packedBytesOf = weights->bytesOfRoles();
    describeDerivation(*lowered.module, variant);
  }
  return weights;
}

/// Compiles the glue of an entry or, with several pipeline stages, of an entry's part for the stages with `role`.
FailureOr<EntryCode> ModelCompiler::compileBody(const EntryInterface &entry, StringRef name, uint32_t role,
                                                BodyContext &context) {
  auto &[lowered, variant, weights, host, kernels, constants] = context;
  auto function = lowered.module->lookupSymbol<func::FuncOp>(name);
  if (!function)
    return fail("entry \"" + entry.name + "\" was lost on the way");
  FailureOr<mlir::kiln::MemoryPlan> plan = mlir::kiln::MemoryPlan::compute(function);
  if (failed(plan))
    return failure();
  if (&variant == &report.variants.front() && !function->hasAttr(mlir::kiln::derivesAttrName))
    report.memoryPlan += mlir::kiln::printMemoryPlan(function, *plan);
  const uint64_t states = entry.stateBytes;
  EntryCode code{kernelSymbol(*lowered.target, name), states + plan->arenaBytes(), states + plan->lowerBound()};
  code.function = name.str();
  if (variant.isOnDevice())
    code.stagingBytes = stagingBytes(entry);
  code.steps = listSteps(function, *plan, lowered.forms, options.extents);
  code.buffers = listBuffers(function, *plan);
  function.walk([&](mlir::kiln::CallOp call) {
    auto addScratch = [&](StringRef callee) {
      auto kernel = lowered.kernels.find(callee);
      if (kernel == lowered.kernels.end())
        return;
      code.scratchBytes = std::max<uint64_t>(code.scratchBytes, kernel->second.scratchBytes);
      code.taskBytes = std::max<uint64_t>(code.taskBytes, kernel->second.taskBytes);
    };
    addScratch(call.getCallee());
    if (auto forms = lowered.forms.find(call.getCallee()); forms != lowered.forms.end())
      for (const KernelVariant &form : forms->second)
        addScratch(form.function);
  });
  HostCodeInput input{entry,         report.model,           weights,   *plan, code.symbol, kernels,
                      lowered.forms, lowered.target->info(), constants, role};
  if (failed(emitHostCode(function, input, host)))
    return failure();
  return code;
}

LogicalResult ModelCompiler::compileHost(TargetModule &lowered, Variant &variant) {
  ModuleOp module = *lowered.module;
  const Target &target = *lowered.target;
  FailureOr<WeightLayout> weights = layOutWeights(lowered, variant);
  if (failed(weights))
    return failure();

  OwningOpRef<ModuleOp> host = ModuleOp::create(module.getLoc());
  BodyContext context{lowered, variant, *weights, *host};
  for (auto function : llvm::make_filter_range(module.getOps<func::FuncOp>(), isKernel)) {
    const KernelAbi &abi = target.compilerOf(function).abi();
    context.kernels[function.getName()] = {kernelSymbol(target, function.getName()), &abi};
    hookPrefixes.insert(abi.hookPrefix());
  }
  for (auto [number, role] : llvm::enumerate(mlir::kiln::getStageRoles(module)))
    for (auto [index, entry] : llvm::enumerate(report.model.entries)) {
      FailureOr<EntryCode> code =
          compileBody(entry, mlir::kiln::getStageRoleName(entry.name, role.name), number, context);
      if (failed(code))
        return failure();
      code->entry = index;
      variant.entries.push_back(std::move(*code));
    }
  if (module.lookupSymbol(mlir::kiln::derivesFunctionName)) {
    FailureOr<EntryCode> code = compileBody(derivingInterface(), mlir::kiln::derivesFunctionName, 0, context);
    if (failed(code))
      return failure();
    variant.deriving = std::move(*code);
  }
  variant.constants = context.constants.bytes();
  if (variant.isOnDevice())
    for (const KernelSummary &kernel : variant.kernels)
      variant.modules.push_back(kernel.symbol + deviceModuleSuffix);

  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(*host, hostContext, target.name());
  if (!translated)
    return failure();
  // The linker makes the names of private constants unique. Functions already have unique names.
  if (llvm::Linker::linkModules(hostModule, std::move(translated)))
    return fail("the host functions of " + target.name().str() + " could not be linked");
  return success();
}

LogicalResult ModelCompiler::findTargets() {
  if (options.targets.empty())
    return fail("compile: no target; expected at least one");
  for (const std::string &name : options.targets) {
    const Target *target = findTarget(name);
    if (!target)
      return fail(fmt::format("target \"{}\": unknown; expected one of {}", name, fmt::join(targetNames(), ", ")));
    const TargetInfo &first = targets.empty() ? target->info() : targets.front()->info();
    if (target->info().hostTriple != first.hostTriple)
      return fail(fmt::format("targets: several architectures or systems; expected one, got {} of {} and {} of {}",
                              first.name, first.hostTriple, name, target->info().hostTriple));
    targets.push_back(target);
  }
  return success();
}

/// Computes the calls and expected results of the self-test from the imported model, before any target changes it.
LogicalResult ModelCompiler::evaluateTrials() {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  OwningOpRef<ModuleOp> module =
      importModel(graph, &context, report.model.name, options.lowering.weights, options.lowering.ranks);
  if (!module)
    return failure();
  llvm::Expected<std::vector<SelfTestTrial>> evaluated = evaluateSelfTest(*module, report.model, options.lowering.tf32);
  if (!evaluated)
    return fail(evaluated.takeError());
  trials = std::move(*evaluated);
  return success();
}

/// Collects the archive's members: the kernels, the entry-point glue and the runtime, with the model's symbols.
LogicalResult ModelCompiler::gatherMembers() {
  const std::string &name = report.model.name;
  const CpuName cpu{targets.front()->info().hostTriple, targets.front()->info().hostCpu};
  hostModule.setTargetTriple(llvm::Triple(cpu.triple));
  emitDescriptor(hostModule, report.model, report.variants);
  std::vector<uint64_t> digests;
  llvm::Expected<std::string> host = compileToObject(hostModule, cpu);
  if (!host)
    return fail(host.takeError());
  members.push_back({name + "_host.o", std::move(*host)});
  if (report.model.embedsWeights) {
    llvm::Expected<EmbeddedWeights> weights = compileWeights(report.model, report.variants, *options.embedded, cpu);
    if (!weights)
      return fail(weights.takeError());
    members.push_back({name + "_weights.o", std::move(weights->object)});
    digests = std::move(weights->digests);
  }
  if (report.model.hasSelfTest) {
    llvm::Expected<std::string> table = compileSelfTest(trials, digests, cpu);
    if (!table)
      return fail(table.takeError());
    members.push_back({name + "_selftest.o", std::move(*table)});
  }
  llvm::Expected<uint64_t> bytes =
      joinMembers(members, std::move(runtime), report.model, report.variants, hookPrefixes.getArrayRef());
  if (!bytes)
    return fail(bytes.takeError());
  report.textBytes = *bytes;
  std::string wrong = checkBudgets(report, options);
  return wrong.empty() ? success() : fail(wrong);
}

LogicalResult ModelCompiler::writeLibrary() {
  const std::string &name = report.model.name;
  if (failed(gatherMembers()))
    return failure();
  llvm::Expected<std::string> archive = makeArchive(members);
  if (!archive)
    return fail(archive.takeError());
  report.archiveBytes = archive->size();
  report.model.digest = llvm::xxh3_64bits(*archive);
  std::string stem = options.outputDirectory + "/";
  const std::string header = writeCHeader(report.model, report.variants);
  report.libraryFile =
      options.isShared ? sharedObjectName(name, targets.front()->info().hostTriple) : "lib" + name + ".a";
  if (failed(write(stem + name + ".h", header)) ||
      failed(write(stem + name + ".hpp", writeCxxHeader(report.model, report.variants))) ||
      failed(write(stem + name + ".manifest.json", writeManifest(report.model, report.variants))) ||
      failed(write(stem + name + ".pc", writePkgConfig(report.model, options.isShared))) ||
      failed(write(stem + name + ".LICENSE.txt", writeLicense(report.model))))
    return failure();
  for (const std::string &language : options.bindings) {
    const Binding binding = writeBinding(language, report.model, report.libraryFile);
    if (failed(write(stem + binding.file, binding.text)))
      return failure();
  }
  if (!options.isShared)
    return write(stem + "lib" + name + ".a", *archive);
  const SharedObject shared{stem + report.libraryFile, name, targets.front()->info().hostTriple, options.linker,
                            KILN_ABI_VERSION};
  llvm::Error error = linkSharedObject(shared, std::move(members), header);
  return error ? fail(std::move(error)) : success();
}

FailureOr<CompileReport> ModelCompiler::run() {
  if (std::string wrong = checkModelName(options.name); !wrong.empty())
    return fail(wrong);
  if (failed(findTargets()))
    return failure();
  if (std::string wrong = checkRanks(graph, options.lowering, targets); !wrong.empty())
    return fail(wrong);
  const RankChoices &ranks = options.lowering.ranks;
  if (ranks.ranks * ranks.replicas * ranks.stages > 1 && (options.hasSelfTest || options.embedded))
    return fail(
        "self-test or embedded weights: not supported with several ranks, replicas or stages; expected neither");
  if (ranks.ranks * ranks.replicas * ranks.stages > 1 && !options.bindings.empty())
    return fail(
        "bindings: calls of a library for several processes take communicators, which are functions of C; expected "
        "one rank, replica and stage");
  report.model = describeInterface(graph, options.name);
  if (std::string wrong = checkExtents(report.model, options.extents); !wrong.empty())
    return fail(wrong);
  report.model.embedsWeights = options.embedded.has_value();
  report.model.hasSelfTest = options.hasSelfTest;
  llvm::Expected<std::vector<ObjectFile>> found = readRuntime(*targets.front());
  if (!found)
    return fail(found.takeError());
  runtime = std::move(*found);
  if (llvm::Error wrong = checkNames(report.model, runtime))
    return fail(std::move(wrong));
  std::vector<TargetModule> modules;
  for (const Target *target : targets) {
    if (failed(timed(target->info().name + " forming of kernels",
                     [&] { return lowerForTarget(graph, options, *target, report, modules.emplace_back(), errors); })))
      return failure();
    if (options.form == EmitForm::Ir)
      break; // this form is the same for all targets
  }
  if (options.form == EmitForm::Ir || options.form == EmitForm::Linalg)
    return std::move(report);
  if (options.form == EmitForm::Layout) {
    for (TargetModule &lowered : modules) {
      Variant &variant = report.variants.emplace_back();
      variant.target = lowered.target->info().name;
      if (failed(layOutWeights(lowered, variant)))
        return failure();
    }
    unfoldNestedStacks(report.model, report.variants);
    return std::move(report);
  }
  if (failed(chooseSchedules(modules)))
    return failure();
  if (options.form == EmitForm::Stmt || options.form == EmitForm::Assembly) {
    if (failed(printKernels(modules)))
      return failure();
    return std::move(report);
  }
  if (report.model.hasSelfTest && failed(timed("self-test", [&] { return evaluateTrials(); })))
    return failure();
  if (!options.loopsOf.empty() && failed(timed("loop nests", [&] { return printLoops(modules); })))
    return failure();
  if (failed(timed("kernels", [&] { return compileKernels(modules); })))
    return failure();
  for (auto [lowered, variant] : llvm::zip_equal(modules, report.variants))
    if (failed(timed(variant.target + " host code", [&] { return compileHost(lowered, variant); })))
      return failure();
  unfoldNestedStacks(report.model, report.variants);
  if (options.form == EmitForm::Library && failed(timed("archive", [&] { return writeLibrary(); })))
    return failure();
  if (options.form == EmitForm::Memory) {
    if (failed(timed("members", [&] { return gatherMembers(); })))
      return failure();
    report.members = std::move(members);
  }
  if (options.form == EmitForm::Objects)
    for (const ObjectFile &member : members)
      if (failed(write(options.outputDirectory + "/" + member.name, member.bytes)))
        return failure();
  return std::move(report);
}

} // namespace

FailureOr<CompileReport> compileModel(const Graph &graph, const CompileOptions &options, raw_ostream &errors) {
  return ModelCompiler(graph, options, errors).run();
}

} // namespace kiln
