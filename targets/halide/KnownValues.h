// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace kiln::halide {

/// The ops of a kernel that are computed from constants alone, or from the result of one that is. Such a result may be
/// known to be NaN or infinite when the kernel is compiled: LLVM, which Halide lets assume that there is neither, would
/// make nothing of it and of all that follows. They are to be strict.
llvm::DenseSet<mlir::Operation *> madeOfKnownValues(mlir::func::FuncOp kernel);

} // namespace kiln::halide
