// SPDX-License-Identifier: Apache-2.0
//
// Whether a lowered kernel reads and writes what it may, for given values of its index arguments. No lane reads or
// writes outside of its buffer, every element of a result is written once and follows from nothing undefined, an
// argument that a result takes the memory of is not read behind the store, and tasks of one loop do not meet.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/halide/StatementChecker.h"
#include "targets/target.h"

namespace kiln::halide {

/// Checks the statement of a kernel that was translated with the symbol `symbol`, whose results have these names: for
/// each case once with all buffers apart, and once for each argument and result that may have the same memory.
MemoryCheck checkKernelMemory(const Halide::Internal::Stmt &stmt, mlir::func::FuncOp kernel, llvm::StringRef symbol,
                              llvm::ArrayRef<std::string> results, llvm::ArrayRef<MemoryCase> cases);

/// The least value of each index argument, a middle one and the largest, each as far as it goes with few steps.
std::vector<MemoryCase> usualMemoryCases(mlir::func::FuncOp kernel);

} // namespace kiln::halide
