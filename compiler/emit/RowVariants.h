// SPDX-License-Identifier: Apache-2.0
//
// Forms of kernels for few rows. A form is a kernel function of its own: a clone whose kiln.bounds of one index
// argument are narrower, so whatever compiles, tunes or caches kernels sees nothing new. The host code picks one at
// each call.
#pragma once

#include "targets/target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// A form for the calls that a target's RowVariant says.
struct KernelForm : RowVariant {
  std::string function; // "linear_3_rows4"
};

/// Kernel function -> its forms by ascending bound; beyond the last one the kernel itself serves.
using RowVariants = llvm::StringMap<llvm::SmallVector<KernelForm, 2>>;

/// The function that serves a call with these extents, one an index argument: a form of `kernel`, or the kernel itself.
llvm::StringRef chooseForm(const RowVariants &variants, llvm::StringRef kernel, llvm::ArrayRef<int64_t> extents);

/// Puts the forms that the target wants behind the module's kernel functions.
RowVariants addRowVariants(mlir::ModuleOp module, const Target &target);

} // namespace kiln
