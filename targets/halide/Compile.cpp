// SPDX-License-Identifier: Apache-2.0
//
// Halide reports errors as exceptions. This file turns them into diagnostics at the kernel function.
#include "targets/halide/Compile.h"

#include "compiler/object/Object.h"
#include "compiler/schedule/SearchSpace.h"
#include "targets/halide/Abi.h"
#include "targets/halide/LoopNest.h"
#include "targets/halide/Structure.h"
#include "targets/halide/check/MemoryChecker.h"
#include "targets/halide/check/ScratchBound.h"
#include "targets/halide/strategies/Strategy.h"
#include "targets/halide/translate/Translator.h"
#include "targets/halide/translate/VectorFunctions.h"
#include "targets/halide/workarounds/StrictFloats.h"
#include "targets/halide/workarounds/StridedLoads.h"
#include "targets/halide/workarounds/VectorCalls.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::halide {

using namespace mlir;

static std::unique_ptr<Strategy> chooseStrategy(const DecomposedKernel &kernel, const MachineModel &machine) {
  for (auto match : {matchOneQuery, matchAttention})
    if (std::unique_ptr<Strategy> strategy = match(kernel, machine))
      return strategy;
  for (auto match : {matchSkinnyGemm, matchWinograd, matchConvolution, matchContraction, matchRunningSum,
                     matchRowReduction, matchPointwise})
    if (std::unique_ptr<Strategy> strategy = match(kernel.get(), machine))
      return strategy;
  llvm_unreachable("the pointwise strategy applies to every kernel");
}

void setCodeOptions(const std::string &options) {
  [[maybe_unused]] static const int once = setenv("HL_LLVM_ARGS", options.c_str(), 1);
}

namespace {

/// An in-memory file with a path to which Halide can write. A job that is killed leaves no file.
class MemoryFile {
public:
  MemoryFile() : descriptor(memfd_create("kiln-kernel", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor >= 0)
      close(descriptor);
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }
  auto read() const { return llvm::MemoryBuffer::getFile(path()); }

private:
  int descriptor;
};

class Compilation {
public:
  Compilation(func::FuncOp function, StringRef symbol, const CodeTarget &target)
      : decomposed(function), kernel(decomposed.get()), symbol(symbol), target(target), translator(kernel, symbol) {
    translator.vectorFunctions =
        VectorFunctions::of(target.triple, target.features, target.machine.hasFusedMultiplyAdd, target.hasByteProducts);
  }

  LogicalResult lower(const ScheduleConfig *config) {
    if (failed(verifyKernel(kernel)))
      return failure();
    std::unique_ptr<Strategy> strategy = chooseStrategy(decomposed, target.machine);
    std::string error;
    auto resolved = resolve(strategy->searchSpace(), config, error);
    if (!resolved)
      return kernel.emitError() << strategy->name() << " " << error;
    result.strategy = strategy->name();
    result.schedule = *resolved;
    strategy->prepare(translator, *resolved);
    if (failed(translator.run()))
      return failure();
    strategy->schedule(translator, *resolved);

    std::vector<Halide::Func> outputs;
    for (const Output &output : translator.outputs)
      outputs.push_back(output.func);
    Halide::Pipeline pipeline(outputs);
    for (const StreamPrefetch &prefetch : translator.prefetches)
      pipeline.add_custom_lowering_pass(new PrefetchStream(prefetch));
    auto *scratch = new ScratchBound(translator.symbols, KernelFunction(kernel).bounds());
    pipeline.add_custom_lowering_pass(scratch);
    pipeline.add_custom_lowering_pass(new BoundStridedLoads);
    translator.usesVectorFunctions |= translator.vectorFunctions.hasFma;
    using Products = KeepOrderOfFloats::Products;
    const bool isRelaxed = !translator.isBatchInvariant && StringRef(target.newer.features).contains("relaxed-simd");
    pipeline.add_custom_lowering_pass(new KeepOrderOfFloats(translator.vectorFunctions.hasFma ? Products::Fused
                                                            : isRelaxed                       ? Products::Either
                                                                                              : Products::Rounded));
    pipeline.add_custom_lowering_pass(new KeepStatement(statement));
    inlinesFunctions = translator.usesVectorFunctions && !linksBitcode;
    if (inlinesFunctions && failed(passVectorsInMemory(pipeline)))
      return failure();
    module.emplace(
        pipeline.compile_to_module(translator.arguments, symbol.str(), halideTarget(), Halide::LinkageType::External));
    module->set_any_strict_float(true);
    if (translator.usesVectorFunctions)
      addVectorFunctions(*module, translator.vectorFunctions);
    if (!scratch->unbounded.empty())
      return kernel.emitError() << "kernel: unbounded scratch memory; expected a bound, got none for \""
                                << scratch->unbounded << "\"";
    result.scratchBytes = scratch->bytes;
    result.taskBytes = scratch->taskBytes;
    return success();
  }

  FailureOr<std::string> print(KernelText form) {
    switch (form) {
    case KernelText::Stmt:
      return emit(Halide::OutputFileType::stmt);
    case KernelText::Loops:
      return printLoopNest(statement, symbol);
    case KernelText::Assembly:
      break;
    }
    return emitCode(/*isAssembly=*/true);
  }

  FailureOr<std::string> emit(Halide::OutputFileType type) {
    MemoryFile file;
    module->compile({{type, file.path()}});
    auto buffer = file.read();
    if (!buffer)
      return kernel.emitError() << "cannot read the kernel's code: " << buffer.getError().message();
    return (*buffer)->getBuffer().str();
  }

  FailureOr<std::string> emitCode(bool isAssembly) {
    if (target.newer.triple.empty() && !inlinesFunctions)
      return emit(isAssembly ? Halide::OutputFileType::assembly : Halide::OutputFileType::object);
    FailureOr<std::string> bitcode = emit(Halide::OutputFileType::bitcode);
    if (failed(bitcode))
      return bitcode;
    InlinedFunctions functions;
    if (inlinesFunctions)
      functions = inlinedFunctions(translator.vectorFunctions);
    functions.optimizesLoops = !translator.keepsLoops;
    llvm::Expected<std::string> code =
        compileBitcode(*bitcode, target.newer, isAssembly, inlinesFunctions ? &functions : nullptr);
    if (!code)
      return kernel.emitError() << "cannot compile the kernel's bitcode: " << llvm::toString(code.takeError());
    return std::move(*code);
  }

  FailureOr<std::string> emitObject() {
    FailureOr<std::string> code = emitCode(/*isAssembly=*/false);
    if (failed(code) || !translator.usesVectorFunctions || inlinesFunctions || !target.newer.triple.empty())
      return code;
    llvm::Expected<std::string> kept = removeFunctions(*code, vectorFunctionPrefix);
    if (!kept)
      return kernel.emitError() << "cannot strip the kernel's code: " << llvm::toString(kept.takeError());
    return std::move(*kept);
  }

  /// Checks the memory accesses of the kernel; call after lower().
  MemoryCheck check(ArrayRef<MemoryCase> cases) {
    std::vector<std::string> results;
    for (const Output &output : translator.outputs)
      for (size_t i = 0; i < output.results.size(); ++i)
        results.push_back(output.func.name() + (output.results.size() > 1 ? "." + std::to_string(i) : ""));
    return checkKernelMemory(statement, kernel, symbol, results, cases);
  }

  KernelObject result;

private:
  Halide::Target halideTarget() const {
    const bool isRiscv = translator.vectorFunctions.target.arch == Halide::Target::RISCV;
    return Halide::Target((isRiscv ? riscvTarget : target.triple) +
                          (target.features.empty() ? "" : "-" + target.features) +
                          "-user_context-no_runtime-no_asserts-no_bounds_query" +
                          (translator.keepsLoops ? withoutLoopOptimizations : withLoopOptimizations));
  }

  LogicalResult passVectorsInMemory(Halide::Pipeline &pipeline) {
    std::set<std::string> names;
    for (StringRef bitcode : inlinedFunctions(translator.vectorFunctions).bitcode) {
      llvm::Expected<std::vector<std::string>> defined = functionNames(bitcode);
      if (!defined)
        return kernel.emitError() << "cannot read the vector functions: " << llvm::toString(defined.takeError());
      names.insert(defined->begin(), defined->end());
    }
    pipeline.add_custom_lowering_pass(new PassVectorsInMemory(std::move(names)));
    return success();
  }

  const DecomposedKernel decomposed;
  func::FuncOp kernel; // the decomposed one
  StringRef symbol;
  const CodeTarget &target;
  Translator translator;
  Halide::Internal::Stmt statement; // after lowering
  std::optional<Halide::Module> module;
  bool inlinesFunctions = false; // whether LLVM 22 links the vector functions
};

class HalideCompiler : public KernelCompiler {
public:
  explicit HalideCompiler(CodeTarget given) : target(std::move(given)) {
    if (target.fewerFeatures == target.features)
      return;
    CodeTarget fewer = target;
    fewer.features = fewer.fewerFeatures;
    fewer.hasByteProducts = false;
    withFewer = std::make_unique<HalideCompiler>(std::move(fewer));
  }

  const KernelAbi &abi() const override { return halideAbi(); }
  const KernelCompiler *fallback() const override { return withFewer.get(); }

  Schedulable describe(func::FuncOp kernel) const override {
    const DecomposedKernel decomposed(kernel);
    std::unique_ptr<Strategy> strategy = chooseStrategy(decomposed, target.machine);
    return {strategy->name().str(), strategy->searchSpace(), strategy->operationShare()};
  }

  std::vector<ShapeVariant> shapeVariants(func::FuncOp kernel) const override {
    const DecomposedKernel decomposed(kernel);
    std::vector<ShapeVariant> variants = chooseStrategy(decomposed, target.machine)->shapeVariants();
    if (target.isSmall)
      llvm::erase_if(variants, [](const ShapeVariant &variant) { return variant.bound > 1; });
    return variants;
  }

  FailureOr<KernelObject> compile(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config) const override {
    return compile(kernel, symbol, config, /*isChecked=*/false);
  }
  FailureOr<KernelObject> compileChecked(func::FuncOp kernel, StringRef symbol,
                                         const ScheduleConfig *config) const override {
    return compile(kernel, symbol, config, /*isChecked=*/true);
  }

  FailureOr<std::string> print(func::FuncOp kernel, StringRef symbol, KernelText form,
                               const ScheduleConfig *config) const override;
  FailureOr<MemoryCheck> checkMemory(func::FuncOp kernel, ArrayRef<MemoryCase> cases,
                                     const ScheduleConfig *config) const override;

private:
  FailureOr<KernelObject> compile(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config,
                                  bool isChecked) const;

  /// Lowers the kernel, then runs `step`. An error of Halide becomes a diagnostic.
  LogicalResult lowered(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config,
                        function_ref<LogicalResult(Compilation &)> step) const;

  CodeTarget target;
  std::unique_ptr<HalideCompiler> withFewer;
};

LogicalResult HalideCompiler::lowered(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config,
                                      function_ref<LogicalResult(Compilation &)> step) const {
  setCodeOptions(target.codeOptions);
  try {
    Compilation compilation(kernel, symbol, target);
    return failed(compilation.lower(config)) ? failure() : step(compilation);
  } catch (const Halide::Error &error) {
    return kernel.emitError() << "halide cannot compile the kernel: " << StringRef(error.what()).trim();
  }
}

FailureOr<KernelObject> HalideCompiler::compile(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config,
                                                bool isChecked) const {
  KernelObject object;
  LogicalResult done = lowered(kernel, symbol, config, [&](Compilation &compilation) -> LogicalResult {
    if (isChecked) {
      MemoryCheck check = compilation.check(usualMemoryCases(kernel));
      if (!check.fault.empty())
        return kernel.emitError() << check.fault;
      if (check.checked == 0)
        kernel.emitRemark() << kernel.getName() << ": memory not checked: too large";
    }
    FailureOr<std::string> code = compilation.emitObject();
    if (failed(code))
      return failure();
    object = std::move(compilation.result);
    object.object = std::move(*code);
    return success();
  });
  if (failed(done))
    return failure();
  return object;
}

FailureOr<MemoryCheck> HalideCompiler::checkMemory(func::FuncOp kernel, ArrayRef<MemoryCase> cases,
                                                   const ScheduleConfig *config) const {
  MemoryCheck check;
  LogicalResult done = lowered(kernel, "kernel", config, [&](Compilation &compilation) {
    check = compilation.check(cases);
    return success();
  });
  if (failed(done))
    return failure();
  return check;
}

FailureOr<std::string> HalideCompiler::print(func::FuncOp kernel, StringRef symbol, KernelText form,
                                             const ScheduleConfig *config) const {
  std::string text;
  LogicalResult done = lowered(kernel, symbol, config, [&](Compilation &compilation) -> LogicalResult {
    FailureOr<std::string> printed = compilation.print(form);
    if (failed(printed))
      return failure();
    text = std::move(*printed);
    return success();
  });
  if (failed(done))
    return failure();
  return text;
}

} // namespace

std::unique_ptr<KernelCompiler> createKernelCompiler(CodeTarget target) {
  return std::make_unique<HalideCompiler>(std::move(target));
}

} // namespace kiln::halide
