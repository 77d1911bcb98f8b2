// SPDX-License-Identifier: Apache-2.0
//
// 1. Kernels with programmatic dependent launch get their wait for earlier kernels; for targets without it, its
//    instructions are removed.
// 2. scf, arith and math are lowered to the LLVM dialect; nvvm ops are translated as they are.
// 3. LLVM optimises without unrolling or vectorisation: strategies unroll and vectorise where it helps.
// 4. Multiplications and additions are contracted to fused multiply-adds where ops allow it, and nowhere else: the PTX
//    then allows the assembler no further contraction.
#include "targets/cuda/ptx/DeviceModule.h"

#include "compiler/object/CodeGenerators.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "targets/cuda/tile/Builder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

namespace kiln::cuda {

using namespace mlir;

DeviceModule::DeviceModule() : context(MLIRContext::Threading::DISABLED) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  tile::loadDialects(context);
  module = ModuleOp::create(UnknownLoc::get(&context));
}

std::string DeviceModule::print() {
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out);
  return text;
}

/// Removes the read-only attribute from pointers to memory that other kernels write and this one reads, and returns
/// them. The memory is not constant while the kernel waits, as the read-only cache requires.
static llvm::SmallVector<Value> takeWritten(LLVM::LLVMFuncOp kernel) {
  llvm::SmallVector<Value> written;
  for (BlockArgument argument : kernel.getArguments()) {
    const unsigned number = argument.getArgNumber();
    if (!kernel.getArgAttr(number, LLVM::LLVMDialect::getReadonlyAttrName()) ||
        kernel.getArgAttr(number, tile::weightMark))
      continue;
    kernel.removeArgAttr(number, LLVM::LLVMDialect::getReadonlyAttrName());
    written.push_back(argument);
  }
  return written;
}

/// The NVVM op for the wait claims to access no memory, so it becomes inline assembly that may. The pointers are its
/// operands, so that LLVM assumes that it writes to their memory, and still that they do not alias.
static void lowerWait(NVVM::GriddepcontrolOp wait, ValueRange written) {
  std::string constraints;
  for (size_t i = 0; i < written.size(); ++i)
    constraints += "l,";
  OpBuilder b(wait);
  LLVM::InlineAsmOp::create(b, wait.getLoc(), TypeRange(), written, "griddepcontrol.wait;", constraints + "~{memory}",
                            /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
  wait.erase();
}

static void lowerWaits(LLVM::LLVMFuncOp kernel) {
  llvm::SmallVector<NVVM::GriddepcontrolOp> waits;
  kernel.walk([&](NVVM::GriddepcontrolOp op) {
    if (op.getKind() == NVVM::GridDepActionKind::wait)
      waits.push_back(op);
  });
  if (waits.empty())
    return;
  const llvm::SmallVector<Value> written = takeWritten(kernel);
  for (NVVM::GriddepcontrolOp wait : waits)
    lowerWait(wait, written);
}

/// Removes the instructions that only kernels with programmatic dependent launch need.
static void eraseWaits(LLVM::LLVMFuncOp kernel) {
  kernel.walk([](Operation *op) {
    auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
    if (isa<NVVM::GriddepcontrolOp>(op) || (assembly && assembly.getAsmString() == tile::prefetchText))
      op->erase();
  });
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

static std::unique_ptr<llvm::TargetMachine> createMachine(const Chip &chip, std::string &error) {
  registerCodeGenerators();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip.name, chip.features, {}, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = tuning.LoopVectorization = tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// The code generator ends the process at unknown callees, so they must be rejected before.
static llvm::Error checkCalls(const llvm::Module &module) {
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic())
      return llvm::createStringError("it calls the function \"" + function.getName() + "\", which is not there");
  return llvm::Error::success();
}

llvm::Expected<std::string> DeviceModule::compile(const Chip &chip) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> lowered = module->clone();
  for (auto kernel : lowered->getOps<LLVM::LLVMFuncOp>())
    chip.hasDependentLaunch ? lowerWaits(kernel) : eraseWaits(kernel);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code =
      succeeded(lower(*lowered)) ? translateModuleToLLVMIR(*lowered, llvmContext, "device") : nullptr;
  if (!code)
    return llvm::createStringError(message);
  if (llvm::Error error = checkCalls(*code))
    return error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(chip, message);
  if (!machine)
    return llvm::createStringError(message);
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  optimize(*code, *machine);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("the code generator writes no PTX");
  passes.run(*code);
  return std::string(text);
}

} // namespace kiln::cuda
