// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/InlineFunctions.h"

#include "compiler/object/RunPasses.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"

using namespace llvm;

namespace kiln {

static Expected<std::unique_ptr<Module>> parse(StringRef bitcode, LLVMContext &context) {
  return parseBitcodeFile(MemoryBufferRef(bitcode, "functions"), context);
}

Expected<std::vector<std::string>> functionNames(StringRef bitcode) {
  LLVMContext context;
  Expected<std::unique_ptr<Module>> module = parse(bitcode, context);
  if (!module)
    return module.takeError();
  std::vector<std::string> names;
  for (const Function &function : **module)
    if (!function.isDeclaration())
      names.push_back(function.getName().str());
  return names;
}

/// Links one module. Its functions become internal, so that they vanish when all calls are inlined.
static Error link(Module &module, StringRef bitcode) {
  Expected<std::unique_ptr<Module>> added = parse(bitcode, module.getContext());
  if (!added)
    return added.takeError();
  (*added)->setTargetTriple(module.getTargetTriple());
  (*added)->setDataLayout(module.getDataLayout());
  if (NamedMDNode *flags = (*added)->getModuleFlagsMetadata()) // they are for Halide's linker
    (*added)->eraseNamedMetadata(flags);
  std::vector<std::string> names;
  for (const Function &function : **added)
    if (!function.isDeclaration())
      names.push_back(function.getName().str());
  if (Linker::linkModules(module, std::move(*added)))
    return createStringError("functions: cannot be linked to the kernel");
  for (const std::string &name : names)
    module.getFunction(name)->setLinkage(GlobalValue::InternalLinkage);
  return Error::success();
}

/// Defines `ptr NAME_in_memory(ptr)`: loads the operands, calls `function`, and stores the result.
static void defineInMemory(Function &inMemory, Function &function) {
  IRBuilder<> builder(BasicBlock::Create(inMemory.getContext(), "", &inMemory));
  SmallVector<Type *> members{function.getReturnType()};
  llvm::append_range(members, function.getFunctionType()->params());
  StructType *layout = StructType::get(inMemory.getContext(), members);
  Value *memory = inMemory.getArg(0);
  auto member = [&](unsigned number) { return builder.CreateStructGEP(layout, memory, number); };
  SmallVector<Value *> operands;
  for (unsigned i = 1; i < members.size(); ++i)
    operands.push_back(builder.CreateLoad(members[i], member(i)));
  builder.CreateStore(builder.CreateCall(&function, operands), member(0));
  builder.CreateRet(memory);
  inMemory.setLinkage(GlobalValue::InternalLinkage);
  inMemory.addFnAttr(Attribute::AlwaysInline);
}

static Error defineAllInMemory(Module &module) {
  for (Function &inMemory : module) {
    StringRef name = inMemory.getName();
    if (!inMemory.isDeclaration() || !name.consume_back(inMemorySuffix))
      continue;
    Function *function = module.getFunction(name);
    if (!function || function->isDeclaration())
      return createStringError("functions: no definition of \"" + name + "\"");
    defineInMemory(inMemory, *function);
  }
  return Error::success();
}

static void addFeatures(Module &module, StringRef features) {
  if (features.empty())
    return;
  for (Function &function : module) {
    StringRef before = function.getFnAttribute("target-features").getValueAsString();
    function.addFnAttr("target-features", (before + (before.empty() ? "" : ",") + features).str());
  }
}

/// Optimises as Halide does.
static void optimize(Module &module, bool hasLoops, TargetMachine &machine) {
  PipelineTuningOptions tuning;
  tuning.LoopInterleaving = tuning.LoopVectorization = tuning.LoopUnrolling = hasLoops;
  tuning.SLPVectorization = false; // it would vectorise the row pointers of a register tile, only to extract them again
  PassBuilder builder(&machine, tuning);
  ModulePassManager passes;
  passes.addPass(AlwaysInlinerPass());
  passes.addPass(builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3));
  runPasses(std::move(passes), builder, module);
}

Error inlineFunctions(Module &module, const InlinedFunctions &functions, TargetMachine &machine) {
  for (StringRef bitcode : functions.bitcode)
    if (Error error = link(module, bitcode))
      return error;
  if (Error error = defineAllInMemory(module))
    return error;
  addFeatures(module, functions.features);
  optimize(module, functions.optimizesLoops, machine);
  return Error::success();
}

} // namespace kiln
