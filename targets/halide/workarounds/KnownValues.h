// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace kiln::halide {

/// Returns the ops of a kernel that are computed only from constants or from the result of such an op; these must be
/// strict. Their results may be known to be NaN or infinite at compile time. LLVM, which Halide lets assume that
/// neither exists, would turn them and everything computed from them into undefined values.
llvm::DenseSet<mlir::Operation *> madeOfKnownValues(mlir::func::FuncOp kernel);

} // namespace kiln::halide
