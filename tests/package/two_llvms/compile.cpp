// SPDX-License-Identifier: Apache-2.0
//
// Compiled for both versions of LLVM: COMPILE is the name of the function.
#include "halide.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

using namespace llvm;

#if LLVM_VERSION_MAJOR == 14
static const auto assembly = CGFT_AssemblyFile;
static const std::string triple = "x86_64-linux-gnu";
#else
static const auto assembly = CodeGenFileType::AssemblyFile;
static const Triple triple("x86_64-linux-gnu");
#endif

std::string Halide::COMPILE() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMContext context;
  Module module("module", context);
  IRBuilder<> builder(context);
  auto *function =
      Function::Create(FunctionType::get(builder.getInt32Ty(), false), Function::ExternalLinkage, "seven", module);
  builder.SetInsertPoint(BasicBlock::Create(context, "entry", function));
  builder.CreateRet(builder.getInt32(7));
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return error;
  const std::unique_ptr<TargetMachine> machine(target->createTargetMachine(triple, "", "", {}, {}));
  legacy::PassManager passes;
  SmallString<0> text;
  raw_svector_ostream out(text);
  machine->addPassesToEmitFile(passes, out, nullptr, assembly);
  passes.run(module);
  return std::string(text) + LLVM_VERSION_STRING;
}
