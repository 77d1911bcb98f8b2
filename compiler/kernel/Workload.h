// SPDX-License-Identifier: Apache-2.0
//
// Computes what a kernel call reads, computes and writes for given dimensions.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <cstdint>
#include <vector>

namespace kiln {

/// Returns the shape of a tensor for given values of the symbols, and its size in bytes.
std::vector<int64_t> shapeOf(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> extents);
int64_t storedBytes(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> extents);

/// Returns the extents of an op's loops; 1 for a loop whose extent no operand has.
std::vector<int64_t> loopExtents(mlir::linalg::GenericOp op, llvm::ArrayRef<int64_t> extents);

/// The minimum work of a call, for any schedule: floating-point operations, without those that masks exclude, and bytes
/// of arguments and of results.
struct Work {
  double operations = 0, bytesRead = 0, bytesWritten = 0;
};
Work measureWork(mlir::func::FuncOp kernel, llvm::ArrayRef<int64_t> extents);

/// Returns a range of sensible values of an integer argument, first and past the last: below the size of the axis that
/// they index, or in the upper half of the loops with which they are compared.
std::pair<int64_t, int64_t> integerRange(mlir::func::FuncOp kernel, unsigned argument, llvm::ArrayRef<int64_t> extents);

} // namespace kiln
