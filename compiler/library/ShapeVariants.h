// SPDX-License-Identifier: Apache-2.0
//
// Shape-specialised variants of kernels, for skinny GEMM and GEMV. A variant is a separate kernel function: a clone
// with narrower kiln.bounds of one index argument, so that compiling, tuning and caching kernels need no special cases.
// The entry-point glue selects a variant at each call.
#pragma once

#include "targets/target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace kiln {

/// A variant for the calls that a target's ShapeVariant describes.
struct KernelVariant : ShapeVariant {
  std::string function; // "linear_3_rows4"
};

/// Maps a kernel function to its variants by ascending bound. The kernel itself serves larger calls.
using ShapeVariants = llvm::StringMap<llvm::SmallVector<KernelVariant, 2>>;

/// Returns the function that serves a call with these values of the index arguments: a variant of `kernel`, or the
/// kernel itself.
llvm::StringRef chooseVariant(const ShapeVariants &variants, llvm::StringRef kernel, llvm::ArrayRef<int64_t> extents);

/// Inserts the variants that the target wants after the module's kernel functions.
ShapeVariants addShapeVariants(mlir::ModuleOp module, const Target &target);

} // namespace kiln
