// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/IR/PassManager.h"

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace kiln {

/// Runs passes of LLVM on a module, with the analyses of `builder`.
void runPasses(llvm::ModulePassManager passes, llvm::PassBuilder &builder, llvm::Module &module);

} // namespace kiln
