// SPDX-License-Identifier: Apache-2.0
//
// Checks that a lowered kernel accesses memory correctly for given values of its index arguments. No lane reads or
// writes outside of its buffer, every element of a result is written once and depends on no undefined value, an
// argument whose memory a result reuses is not read after the store, and the tasks of a parallel loop do not race.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/halide/check/StatementChecker.h"
#include "targets/target.h"

namespace kiln::halide {

/// Checks the statement of a kernel that was translated with the symbol `symbol` and whose results have the names
/// `results`. Each case runs once with all buffers disjoint, and once for each argument and result that may share
/// memory.
MemoryCheck checkKernelMemory(const Halide::Internal::Stmt &stmt, mlir::func::FuncOp kernel, llvm::StringRef symbol,
                              llvm::ArrayRef<std::string> results, llvm::ArrayRef<MemoryCase> cases);

/// Returns the default cases: the least, some intermediate and the largest values of the index arguments.
std::vector<MemoryCase> usualMemoryCases(mlir::func::FuncOp kernel);

} // namespace kiln::halide
