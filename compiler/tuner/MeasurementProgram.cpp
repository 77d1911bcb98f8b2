// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/MeasurementProgram.h"

#include "compiler/library/RuntimeImage.h"
#include "compiler/tuner/MeasurementImage.h"
#include "compiler/tuner/measurement.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include <fmt/format.h>

namespace kiln {

using namespace mlir;

namespace {

/// Generates the functions of the program that depend on its kernels: main, and kiln_measurement_call
/// (compiler/tuner/measurement.h).
class CallEmitter {
public:
  CallEmitter(ModuleOp module, const MeasurementArguments &arguments)
      : module(module), arguments(arguments), builder(module.getContext()), loc(builder.getUnknownLoc()),
        i32(builder.getI32Type()), i64(builder.getI64Type()),
        pointer(LLVM::LLVMPointerType::get(builder.getContext())) {
    builder.setInsertionPointToEnd(module.getBody());
  }

  void emitMain(bool isWasm) {
    auto measurementMain = declare("kiln_measurement_main", LLVM::LLVMFunctionType::get(i32, {}));
    // Clang's name for a main without arguments.
    LLVM::LLVMFuncOp main = declare(isWasm ? "__main_void" : "main", measurementMain.getFunctionType());
    builder.setInsertionPointToStart(main.addEntryBlock(builder));
    LLVM::ReturnOp::create(builder, loc, LLVM::CallOp::create(builder, loc, measurementMain, ValueRange()).getResult());
    builder.setInsertionPointToEnd(module.getBody());
  }

  void emitCall(ArrayRef<std::string> kernels) {
    SmallVector<LLVM::LLVMFuncOp> functions;
    for (const std::string &kernel : kernels)
      functions.push_back(declare(kernel, kernelType()));
    LLVM::LLVMFuncOp call = declare("kiln_measurement_call", LLVM::LLVMFunctionType::get(i32, {i64, pointer, pointer}));
    builder.setInsertionPointToStart(call.addEntryBlock(builder));
    const SmallVector<KernelArgument> values = loadArguments(call.getArgument(2));
    int64_t bytes = 8;
    for (const MeasurementArguments::Tensor &tensor : arguments.tensors)
      bytes += arguments.abi->descriptorBytes(tensor.rank);
    Value memory = LLVM::AllocaOp::create(builder, loc, pointer, builder.getI8Type(), constant(i64, bytes), 16);
    for (auto [number, function] : llvm::enumerate(functions)) {
      Block *here = builder.getInsertionBlock(), *called = builder.createBlock(&call.getBody(), call.getBody().end()),
            *next = builder.createBlock(&call.getBody(), call.getBody().end());
      builder.setInsertionPointToEnd(here);
      Value isThis = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, call.getArgument(0),
                                          constant(i64, static_cast<int64_t>(number)));
      LLVM::CondBrOp::create(builder, loc, isThis, called, next);
      builder.setInsertionPointToEnd(called);
      Value address = LLVM::AddressOfOp::create(builder, loc, function);
      LLVM::ReturnOp::create(builder, loc,
                             arguments.abi->emitCall(builder, loc, address, call.getArgument(1), values, memory));
      builder.setInsertionPointToEnd(next);
    }
    LLVM::ReturnOp::create(builder, loc, constant(i32, -1));
  }

private:
  LLVM::LLVMFuncOp declare(StringRef name, LLVM::LLVMFunctionType type) {
    return LLVM::LLVMFuncOp::create(builder, loc, name, type);
  }
  Value constant(Type type, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, value));
  }

  LLVM::LLVMFunctionType kernelType() {
    SmallVector<Type> types(arguments.extents, builder.getIndexType());
    types.append(arguments.tensors.size(), pointer);
    return arguments.abi->functionType(types);
  }

  /// Loads the arguments of a call in order.
  SmallVector<KernelArgument> loadArguments(Value words) {
    int32_t next = 0;
    auto load = [&]() -> Value {
      Value place = LLVM::GEPOp::create(builder, loc, pointer, i64, words, ArrayRef<LLVM::GEPArg>{next++});
      return LLVM::LoadOp::create(builder, loc, i64, place);
    };
    SmallVector<KernelArgument> values;
    for (size_t i = 0; i < arguments.extents; ++i)
      values.push_back({load(), nullptr, {}});
    for (const MeasurementArguments::Tensor &tensor : arguments.tensors) {
      KernelArgument &value = values.emplace_back();
      value.value = LLVM::IntToPtrOp::create(builder, loc, pointer, load());
      value.element = tensor.element;
      for (int64_t i = 0; i < tensor.rank; ++i)
        value.extents.push_back(load());
    }
    return values;
  }

  ModuleOp module;
  const MeasurementArguments &arguments;
  OpBuilder builder;
  Location loc;
  Type i32, i64, pointer;
};

} // namespace

static std::string kernelName(size_t number) { return fmt::format("kiln_measurement_kernel_{}", number); }

static llvm::Expected<std::string> compileCalls(const TargetInfo &target, size_t numKernels,
                                                const MeasurementArguments &arguments) {
  MLIRContext own(MLIRContext::Threading::DISABLED);
  MLIRContext &context = arguments.tensors.empty() ? own : *arguments.tensors.front().element.getContext();
  context.getOrLoadDialect<LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  CallEmitter emitter(*module, arguments);
  emitter.emitMain(llvm::Triple(target.hostTriple).isWasm());
  std::vector<std::string> names;
  for (size_t i = 0; i < numKernels; ++i)
    names.push_back(kernelName(i));
  emitter.emitCall(names);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(*module, llvmContext, "trial");
  if (!translated)
    return llvm::createStringError("the calls of a trial could not be compiled");
  return compileToObject(*translated, {target.hostTriple, target.hostCpu});
}

/// Builds an archive of measurement.c and the runtime with a symbol table, which linkers require.
static llvm::Expected<std::string> makeRuntime(const TargetInfo &target) {
  std::vector<ObjectFile> members;
  for (auto *find : {measurementArchive, runtimeArchive}) {
    llvm::Expected<llvm::StringRef> image = find(target.hostTriple);
    if (!image)
      return image.takeError();
    llvm::Expected<std::vector<ObjectFile>> some = readArchive(*image);
    if (!some)
      return some.takeError();
    llvm::append_range(members, std::move(*some));
  }
  return makeArchive(members);
}

/// Renames the kernel uniquely, and its references to the names of the runtime library.
static llvm::Expected<std::string> renamed(const KernelCode &code, size_t number, const KernelAbi &abi) {
  llvm::Expected<std::string> named = renameKernel(code.object, code.symbol, kernelName(number));
  if (!named)
    return named.takeError();
  return renameForModel(*named, "kiln", abi.hookPrefix());
}

/// Returns the files in link order.
static llvm::Expected<std::vector<ObjectFile>> makeFiles(const TargetInfo &target, llvm::ArrayRef<KernelCode> kernels,
                                                         const MeasurementArguments &arguments) {
  std::vector<ObjectFile> files;
  auto add = [&](const std::string &name, llvm::Expected<std::string> bytes) -> llvm::Error {
    if (!bytes)
      return bytes.takeError();
    files.push_back({name, std::move(*bytes)});
    return llvm::Error::success();
  };
  if (llvm::Error error = add("calls.o", compileCalls(target, kernels.size(), arguments)))
    return error;
  for (auto [number, code] : llvm::enumerate(kernels))
    if (llvm::Error error = add(kernelName(number) + ".o", renamed(code, number, *arguments.abi)))
      return error;
  if (llvm::Error error = add("libkiln_runtime.a", makeRuntime(target)))
    return error;
  return files;
}

llvm::Expected<std::unique_ptr<Runner>> startMeasurementProgram(const RunnerOptions &options, const TargetInfo &target,
                                                                llvm::ArrayRef<KernelCode> kernels,
                                                                const MeasurementArguments &arguments) {
  llvm::Expected<std::vector<ObjectFile>> files = makeFiles(target, kernels, arguments);
  if (!files)
    return files.takeError();
  llvm::Expected<std::unique_ptr<Runner>> runner = Runner::start(options.script, options.folder, *files);
  if (!runner)
    return runner.takeError();
  const uint64_t first = (*runner)->messages().number();
  if (llvm::Error error = (*runner)->check())
    return error;
  if (first != KILN_MEASURE_MAGIC)
    return llvm::createStringError(fmt::format(
        "\"{} run\": other text on the standard output; expected nothing but what the program writes", options.script));
  return runner;
}

} // namespace kiln
