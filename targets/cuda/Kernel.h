// SPDX-License-Identifier: Apache-2.0
//
// What every strategy asks of a kernel function: whether it is one, and its extents.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kiln::cuda {

/// Checks what every later step relies on: bounds of the index arguments, extents of every tensor, weights stored
/// dense, elements and ops that there is code for. Emits a diagnostic.
mlir::LogicalResult checkKernel(mlir::func::FuncOp kernel);

/// How many index arguments it has; they come before its tensors.
unsigned numSymbols(mlir::func::FuncOp kernel);

/// The extents of an op's loops, over the kernel's index arguments.
llvm::SmallVector<mlir::AffineExpr> loopExtents(mlir::linalg::GenericOp op);

/// How an op with loops reads or writes the operand. Where an index is 0 since its extent is 1, it is a loop of one
/// turn if there is one that has no other: (0, d1) of a row and columns is (d0, d1), as it is for more rows.
mlir::AffineMap operandMap(mlir::OpOperand &operand);

/// The least and the largest value of an extent in the kernel; 0 and 2^48 where numbers of 64 bits do not hold them.
int64_t leastValue(mlir::AffineExpr extent, mlir::func::FuncOp kernel);
int64_t largestValue(mlir::AffineExpr extent, mlir::func::FuncOp kernel);

/// The largest number of elements of a tensor in the kernel.
int64_t mostElements(mlir::Type tensor, mlir::func::FuncOp kernel);

} // namespace kiln::cuda
