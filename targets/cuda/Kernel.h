// SPDX-License-Identifier: Apache-2.0
//
// Queries about a kernel function that every strategy needs: whether it is supported, and its extents.
#pragma once

#include "compiler/kernel/KernelFunction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kiln::cuda {

/// Checks what later code relies on: bounds of the index arguments, extents of every tensor, dense weights, supported
/// element types and ops. Emits a diagnostic.
mlir::LogicalResult checkKernel(mlir::func::FuncOp kernel);

/// Returns the indexing map of an operand. An index 0 of a dimension of extent 1 is replaced by an otherwise unused
/// loop with one iteration, if there is one: (0, d1) of a row and columns becomes (d0, d1), as for more rows.
mlir::AffineMap operandMap(mlir::OpOperand &operand);

/// Return the minimum and the maximum of an extent in the kernel; 0 and 2^48 if 64-bit integers cannot hold them.
int64_t leastValue(mlir::AffineExpr extent, mlir::func::FuncOp kernel);
int64_t largestValue(mlir::AffineExpr extent, mlir::func::FuncOp kernel);

/// Returns the largest number of elements of a tensor in the kernel.
int64_t mostElements(mlir::Type tensor, mlir::func::FuncOp kernel);

} // namespace kiln::cuda
