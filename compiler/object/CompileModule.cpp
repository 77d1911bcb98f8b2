// SPDX-License-Identifier: Apache-2.0
//
// Compiles LLVM IR and bitcode to objects or assembly (Object.h).
#include "compiler/object/CodeGenerators.h"
#include "compiler/object/MaskedStores.h"
#include "compiler/object/Object.h"
#include "compiler/object/RunPasses.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

namespace kiln {

/// Returns the passes for entry-point glue, which runs once per call and is long: they shorten it at a negligible cost
/// in compile time (M-1337).
static ModulePassManager fewPasses() {
  FunctionPassManager simplify;
  simplify.addPass(SROAPass(SROAOptions::ModifyCFG));
  simplify.addPass(EarlyCSEPass());
  simplify.addPass(InstCombinePass());
  simplify.addPass(SimplifyCFGPass());
  ModulePassManager passes;
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(simplify)));
  passes.addPass(GlobalDCEPass());
  return passes;
}

static void optimize(Module &module, TargetMachine &machine) {
  PassBuilder builder(&machine);
  const bool isSent = machine.getTargetTriple().isWasm(); // sent over networks, so its size matters
  runPasses(isSent ? builder.buildPerModuleDefaultPipeline(OptimizationLevel::Os) : fewPasses(), builder, module);
}

static Expected<std::unique_ptr<TargetMachine>> createMachine(const CpuName &name) {
  registerCodeGenerators();
  std::string error;
  Triple triple(name.triple);
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError(error);
  TargetOptions options;
  options.FunctionSections = true;
  options.DataSections = true;
  std::string features = name.features;
  if (triple.isRISCV64()) { // RV64GC, which every Linux has, and its ABI for floats
    features = "+m,+a,+f,+d,+c" + (features.empty() ? "" : "," + features);
    options.MCOptions.ABIName = "lp64d";
  }
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(triple, name.cpu, features, options, Reloc::PIC_,
                                                                    std::nullopt, CodeGenOptLevel::Default));
}

static void setMachine(Module &module, const TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

static Expected<std::string> emit(Module &module, TargetMachine &machine, CodeGenFileType type) {
  SmallString<0> bytes;
  raw_svector_ostream out(bytes);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type))
    return createStringError("the target cannot emit object files");
  passes.run(module);
  return std::string(bytes);
}

Expected<std::string> compileToObject(Module &module, const CpuName &name) {
  Expected<std::unique_ptr<TargetMachine>> machine = createMachine(name);
  if (!machine)
    return machine.takeError();
  setMachine(module, **machine);
  // Hide symbols as in the run time: a shared library that contains a model exports none of its symbols by default. A
  // hidden intrinsic would become a symbol that nothing defines.
  for (GlobalValue &global : module.global_values()) {
    auto *function = dyn_cast<Function>(&global);
    if (global.hasExternalLinkage() && !(function && function->isIntrinsic()))
      global.setVisibility(GlobalValue::HiddenVisibility);
  }
  optimize(module, **machine);
  return emit(module, **machine, CodeGenFileType::ObjectFile);
}

Expected<std::string> compileOptimized(Module &module, const CpuName &name, bool isAssembly) {
  Expected<std::unique_ptr<TargetMachine>> machine = createMachine(name);
  if (!machine)
    return machine.takeError();
  setMachine(module, **machine);
  for (Function &function : module)
    if (!function.isDeclaration() && function.hasExternalLinkage())
      function.setVisibility(GlobalValue::HiddenVisibility);
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", (*machine)->getTargetCPU());
    function.addFnAttr("target-features", (*machine)->getTargetFeatureString());
  }
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  PassBuilder builder(machine->get(), tuning);
  runPasses(builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3), builder, module);
  return emit(module, **machine, isAssembly ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile);
}

/// With relaxed SIMD, LLVM turns a select by a comparison into a minimum or maximum that may return either operand if
/// one is NaN. A select that may choose NaN therefore chooses between the bits.
static void chooseBits(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *choice = dyn_cast<SelectInst>(&instruction);
    if (!choice || !choice->getType()->isFPOrFPVectorTy() || choice->hasNoNaNs())
      continue;
    IRBuilder<> builder(choice);
    Type *bits = choice->getType()->getWithNewType(builder.getIntNTy(choice->getType()->getScalarSizeInBits()));
    Value *yes = builder.CreateBitCast(choice->getTrueValue(), bits);
    Value *no = builder.CreateBitCast(choice->getFalseValue(), bits);
    Value *chosen = builder.CreateSelect(choice->getCondition(), yes, no);
    choice->replaceAllUsesWith(builder.CreateBitCast(chosen, choice->getType()));
    choice->eraseFromParent();
  }
}

/// While it exists, code for x86-64 is assembled without branches that cross or end at a boundary of 32 bytes, which
/// slow down loops (M-0906). LLVM has no other interface to this than an option of its command line.
class AlignedBranches {
public:
  AlignedBranches() { set(true); }
  ~AlignedBranches() { set(false); }
  AlignedBranches(const AlignedBranches &) = delete;
  AlignedBranches &operator=(const AlignedBranches &) = delete;

private:
  static void set(bool isAligned) {
    auto option = cl::getRegisteredOptions().find("x86-branches-within-32B-boundaries");
    assert(option != cl::getRegisteredOptions().end() && "LLVM has this option");
    static_cast<cl::opt<bool> *>(option->second)->setValue(isAligned);
  }
};

/// Removes the CPU that the bitcode was generated for.
static void removeMachine(Function &function) {
  for (StringRef attribute : {"target-cpu", "target-features", "tune-cpu"})
    function.removeFnAttr(attribute);
}

Expected<std::string> compileBitcode(StringRef bitcode, const CpuName &given, bool isAssembly,
                                     const InlinedFunctions *functions) {
  LLVMContext context;
  Expected<std::unique_ptr<Module>> module = parseBitcodeFile(MemoryBufferRef(bitcode, "bitcode"), context);
  if (!module)
    return module.takeError();
  const bool isForNamed = given.triple.empty();
  const CpuName name = isForNamed ? CpuName{(*module)->getTargetTriple().str(), ""} : given;
  Expected<std::unique_ptr<TargetMachine>> machine = createMachine(name);
  if (!machine)
    return machine.takeError();
  setMachine(**module, **machine);
  std::optional<AlignedBranches> alignedBranches;
  if (isForNamed) { // as Halide generates code for that CPU
    (*machine)->setOptLevel(CodeGenOptLevel::Aggressive);
    if ((*machine)->getTargetTriple().isX86())
      alignedBranches.emplace();
  } else {
    for (Function &function : **module)
      removeMachine(function);
  }
  if (functions)
    if (Error error = inlineFunctions(**module, *functions, **machine))
      return error;
  for (Function &function : make_early_inc_range(**module)) {
    if (function.hasWeakODRLinkage() && function.use_empty()) { // all calls are inlined
      function.eraseFromParent();
      continue;
    }
    if (StringRef(name.features).contains("+relaxed-simd"))
      chooseBits(function);
    if ((*machine)->getTargetTriple().isX86())
      storeSingleLanes(function);
  }
  return emit(**module, **machine, isAssembly ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile);
}

} // namespace kiln
