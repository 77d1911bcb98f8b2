// SPDX-License-Identifier: Apache-2.0
//
// Halide reports what it cannot do as exceptions; they end here as diagnostics at the kernel function.
#include "targets/halide/Compile.h"

#include "targets/halide/CheckMemory.h"
#include "targets/halide/Scratch.h"
#include "targets/halide/Strategy.h"
#include "targets/halide/Structure.h"
#include "targets/halide/Translate.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::halide {

using namespace mlir;

static std::unique_ptr<Strategy> chooseStrategy(func::FuncOp kernel, const MachineModel &machine) {
  for (auto match : {matchOneQuery, matchAttention, matchFewRows, matchWinograd, matchConvolution, matchContraction,
                     matchRowReduction, matchPointwise})
    if (std::unique_ptr<Strategy> strategy = match(kernel, machine))
      return strategy;
  llvm_unreachable("the pointwise strategy applies to every kernel");
}

Schedulable describeSchedule(func::FuncOp kernel, const MachineModel &machine) {
  std::unique_ptr<Strategy> strategy = chooseStrategy(kernel, machine);
  return {strategy->name().str(), strategy->searchSpace(), strategy->operationShare()};
}

std::vector<RowVariant> rowVariants(func::FuncOp kernel, const MachineModel &machine) {
  return chooseStrategy(kernel, machine)->rowVariants();
}

namespace {

/// A file in memory, with a path by which Halide writes it: a job that is killed leaves nothing behind.
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
  Compilation(func::FuncOp kernel, StringRef symbol, const CodeTarget &target)
      : kernel(kernel), symbol(symbol), target(target), translator(kernel, symbol) {}

  LogicalResult lower(const SchedulePoint *point) {
    if (failed(verifyKernel(kernel)))
      return failure();
    std::unique_ptr<Strategy> strategy = chooseStrategy(kernel, target.machine);
    std::string error;
    auto resolved = resolve(strategy->searchSpace(), point, error);
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
    auto *scratch = new ScratchBound;
    pipeline.add_custom_lowering_pass(scratch);
    pipeline.add_custom_lowering_pass(new KeepStatement(statement));
    module.emplace(pipeline.compile_to_module(
        translator.arguments, symbol.str(),
        Halide::Target(target.triple + "-" + target.features + "-user_context-no_runtime-no_asserts-no_bounds_query"),
        Halide::LinkageType::External));
    if (!scratch->unbounded.empty())
      return kernel.emitError() << "kernel requires bounded scratch memory, \"" << scratch->unbounded
                                << "\" has no bound";
    result.scratchBytes = scratch->bytes;
    return success();
  }

  FailureOr<std::string> emit(Halide::OutputFileType type) {
    MemoryFile file;
    module->compile({{type, file.path()}});
    auto buffer = file.read();
    if (!buffer)
      return kernel.emitError() << "cannot read the kernel's code: " << buffer.getError().message();
    return (*buffer)->getBuffer().str();
  }

  /// After lower().
  MemoryCheck check(ArrayRef<MemoryCase> cases) {
    std::vector<std::string> results;
    for (const Output &output : translator.outputs)
      for (size_t i = 0; i < output.results.size(); ++i)
        results.push_back(output.func.name() + (output.results.size() > 1 ? "." + std::to_string(i) : ""));
    return checkKernelMemory(statement, kernel, symbol, results, cases);
  }

  KernelObject result;

private:
  func::FuncOp kernel;
  StringRef symbol;
  const CodeTarget &target;
  Translator translator;
  Halide::Internal::Stmt statement; // as it was lowered
  std::optional<Halide::Module> module;
};

} // namespace

/// Options of Halide's LLVM, which Halide reads from the environment before its first code; whatever stood there is
/// gone, since a kernel's object depends on the kernel alone.
/// 1. No branch touches the end of 32 bytes. Intel CPUs from Skylake to Cascade Lake keep code with such a branch out
/// of their cache of decoded instructions (erratum SKX102): while another thread shares the core, a loop of
/// multiply-adds takes 1.04 to 1.09 times as long.
/// 2. No search for vectors in scalar code: it finds the pointers of a tile's rows, and takes them apart again.
static void setCodeOptions() {
  constexpr const char *options = "-x86-branches-within-32B-boundaries -vectorize-slp=false";
  [[maybe_unused]] static const int once = setenv("HL_LLVM_ARGS", options, 1);
}

/// Runs `step`, turning Halide's exceptions into a diagnostic.
static LogicalResult guarded(func::FuncOp kernel, llvm::function_ref<LogicalResult()> step) {
  setCodeOptions();
  try {
    return step();
  } catch (const Halide::Error &error) {
    return kernel.emitError() << "halide cannot compile the kernel: " << StringRef(error.what()).trim();
  }
}

FailureOr<KernelObject> compileKernel(func::FuncOp kernel, StringRef symbol, const CodeTarget &target,
                                      const SchedulePoint *point, bool isChecked) {
  KernelObject object;
  LogicalResult done = guarded(kernel, [&]() -> LogicalResult {
    Compilation compilation(kernel, symbol, target);
    if (failed(compilation.lower(point)))
      return failure();
    if (isChecked) {
      MemoryCheck check = compilation.check(usualMemoryCases(kernel));
      if (!check.fault.empty())
        return kernel.emitError() << check.fault;
      if (check.checked == 0)
        kernel.emitRemark() << kernel.getName() << ": memory not checked: too large";
    }
    FailureOr<std::string> code = compilation.emit(Halide::OutputFileType::object);
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

FailureOr<MemoryCheck> checkMemory(func::FuncOp kernel, const CodeTarget &target, ArrayRef<MemoryCase> cases,
                                   const SchedulePoint *point) {
  MemoryCheck check;
  LogicalResult done = guarded(kernel, [&]() -> LogicalResult {
    Compilation compilation(kernel, "kernel", target);
    if (failed(compilation.lower(point)))
      return failure();
    check = compilation.check(cases);
    return success();
  });
  if (failed(done))
    return failure();
  return check;
}

FailureOr<std::string> printKernel(func::FuncOp kernel, StringRef symbol, const CodeTarget &target, KernelText form,
                                   const SchedulePoint *point) {
  std::string text;
  LogicalResult done = guarded(kernel, [&]() -> LogicalResult {
    Compilation compilation(kernel, symbol, target);
    if (failed(compilation.lower(point)))
      return failure();
    FailureOr<std::string> printed = form == KernelText::Stmt ? compilation.emit(Halide::OutputFileType::stmt)
                                                              : compilation.emit(Halide::OutputFileType::assembly);
    if (failed(printed))
      return failure();
    text = std::move(*printed);
    return success();
  });
  if (failed(done))
    return failure();
  return text;
}

} // namespace kiln::halide
