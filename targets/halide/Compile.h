// SPDX-License-Identifier: Apache-2.0
//
// A kernel function through a strategy and Halide to an object. No Halide in this header.
#pragma once

#include "compiler/schedule/SearchSpace.h"

namespace kiln::halide {

/// What Halide compiles for: the features are names of Halide's Target, "avx2-fma".
struct CodeTarget {
  std::string triple; // "x86-64-linux"
  std::string features;
  MachineModel machine;
};

/// `isChecked`: also checks its accesses to memory for a few values of the index arguments (CheckMemory.h).
mlir::FailureOr<KernelObject> compileKernel(mlir::func::FuncOp kernel, llvm::StringRef symbol, const CodeTarget &target,
                                            const SchedulePoint *point, bool isChecked = false);
mlir::FailureOr<std::string> printKernel(mlir::func::FuncOp kernel, llvm::StringRef symbol, const CodeTarget &target,
                                         KernelText form, const SchedulePoint *point);

/// Checks the kernel's accesses to memory (CheckMemory.h), and generates no code.
mlir::FailureOr<MemoryCheck> checkMemory(mlir::func::FuncOp kernel, const CodeTarget &target,
                                         llvm::ArrayRef<MemoryCase> cases, const SchedulePoint *point);

/// The strategy's name and parameters for a kernel.
Schedulable describeSchedule(mlir::func::FuncOp kernel, const MachineModel &machine);

/// The forms for few rows that its strategy wants.
std::vector<RowVariant> rowVariants(mlir::func::FuncOp kernel, const MachineModel &machine);

} // namespace kiln::halide
