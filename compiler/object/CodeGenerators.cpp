// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/CodeGenerators.h"

#include "llvm/Support/TargetSelect.h"

#define KILN_REGISTER(TARGET)                                                                                          \
  LLVMInitialize##TARGET##TargetInfo();                                                                                \
  LLVMInitialize##TARGET##Target();                                                                                    \
  LLVMInitialize##TARGET##TargetMC();                                                                                  \
  LLVMInitialize##TARGET##AsmPrinter()

void kiln::registerCodeGenerators() {
  static const bool isRegistered = [] {
    KILN_REGISTER(AArch64);
    KILN_REGISTER(NVPTX);
    KILN_REGISTER(RISCV);
    KILN_REGISTER(WebAssembly);
    KILN_REGISTER(X86);
    return true;
  }();
  (void)isRegistered;
}
