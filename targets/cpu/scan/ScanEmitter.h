// SPDX-License-Identifier: Apache-2.0
//
// Generates code of a kernel that is a loop over time: a module of the scf, arith and LLVM dialects.
//
// A task has a block of one axis (compiler/kernel/ScanBlocks.h) and runs all iterations on it. States are in the memory
// of the last values, of which a block stays in the L1 cache; other values of an iteration are in scratch memory. Each
// op of the body is a function, so that its pointers can be noalias, and LLVM vectorises its innermost loop.
#pragma once

#include "compiler/kernel/ScanBlocks.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

namespace kiln::cpu {

struct ScanCode {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  int64_t scratchBytes = 0; // of each task
};

/// What the code depends on.
struct ScanMachine {
  int vectorBytes = 0, pointerBits = 64;
  bool hasFusedMultiplyAdd = false;
};

/// Returns the code of a lowered kernel that has a scan. `hookPrefix`: of the run time's functions, "halide_".
ScanCode emitScan(mlir::func::FuncOp kernel, llvm::StringRef symbol, llvm::StringRef hookPrefix,
                  const ScanMachine &machine);

} // namespace kiln::cpu
