// SPDX-License-Identifier: Apache-2.0
#include "targets/cpu/scan/ScanCompiler.h"

#include "compiler/object/Object.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "targets/halide/Abi.h"
#include "llvm/IR/Module.h"

namespace kiln::cpu {

using namespace mlir;

namespace {

class ScanCompiler : public KernelCompiler {
public:
  ScanCompiler(CpuName cpu, ScanMachine machine) : cpu(std::move(cpu)), machine(machine) {}

  bool accepts(func::FuncOp kernel) const override { return bool(scanOf(kernel)); }
  const KernelAbi &abi() const override { return halide::halideAbi(); }
  Schedulable describe(func::FuncOp) const override { return {strategy, {}}; }

  FailureOr<KernelObject> compile(func::FuncOp kernel, StringRef symbol, const ScheduleConfig *config) const override {
    KernelObject object;
    std::string error;
    if (!resolve({}, config, error))
      return kernel.emitError() << strategy << " " << error;
    FailureOr<std::string> code = generate(kernel, symbol, /*isAssembly=*/false, object.scratchBytes);
    if (failed(code))
      return failure();
    object.object = std::move(*code);
    object.taskBytes = object.scratchBytes;
    object.strategy = strategy;
    return object;
  }

  FailureOr<std::string> print(func::FuncOp kernel, StringRef symbol, KernelText form,
                               const ScheduleConfig *) const override {
    if (form == KernelText::Assembly) {
      int64_t scratch = 0;
      return generate(kernel, symbol, /*isAssembly=*/true, scratch);
    }
    loadDialects(kernel);
    ScanCode code = emitScan(kernel, symbol, abi().hookPrefix(), machine);
    std::string text;
    llvm::raw_string_ostream(text) << *code.module;
    return text;
  }

private:
  static constexpr char strategy[] = "scan";

  static void loadDialects(func::FuncOp kernel) {
    kernel.getContext()->loadDialect<scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect>();
  }

  static LogicalResult lower(ModuleOp module) {
    PassManager passes(module.getContext());
    passes.addPass(createSCFToControlFlowPass());
    passes.addPass(createConvertMathToLLVMPass());
    passes.addPass(createArithToLLVMConversionPass());
    passes.addPass(createConvertControlFlowToLLVMPass());
    passes.addPass(createReconcileUnrealizedCastsPass());
    return passes.run(module);
  }

  FailureOr<std::string> generate(func::FuncOp kernel, StringRef symbol, bool isAssembly, int64_t &scratch) const {
    if (!findScanBlocks(scanOf(kernel), /*isExpanded=*/true))
      return kernel.emitError() << "scan: not a kernel; expected a loop without large products";
    loadDialects(kernel);
    ScanCode code = emitScan(kernel, symbol, abi().hookPrefix(), machine);
    scratch = code.scratchBytes;
    registerBuiltinDialectTranslation(*kernel.getContext());
    registerLLVMDialectTranslation(*kernel.getContext());
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module =
        succeeded(lower(*code.module)) ? translateModuleToLLVMIR(*code.module, context, symbol) : nullptr;
    if (!module)
      return kernel.emitError() << "scan: cannot translate the kernel's code";
    llvm::Expected<std::string> object = compileOptimized(*module, cpu, isAssembly);
    if (!object)
      return kernel.emitError() << "cannot compile the kernel's code: " << llvm::toString(object.takeError());
    return std::move(*object);
  }

  const CpuName cpu;
  const ScanMachine machine;
};

} // namespace

std::unique_ptr<KernelCompiler> createScanCompiler(CpuName cpu, ScanMachine machine) {
  return std::make_unique<ScanCompiler>(std::move(cpu), machine);
}

} // namespace kiln::cpu
