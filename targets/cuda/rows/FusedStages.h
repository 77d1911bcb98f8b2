// SPDX-License-Identifier: Apache-2.0
//
// Consecutive kernel stages that work along the same rows, so that the threads that own a row can execute all of them:
// maximum, sum and quotient of a softmax, moments and elements of a norm.
#pragma once

#include "targets/cuda/plan/Strategy.h"
#include <optional>

namespace kiln::cuda {

/// A read of a tensor in memory, at each iteration of loops over rows and, maybe, along a row.
struct RowRead {
  mlir::Value tensor;
  mlir::AffineMap map;
  llvm::SmallVector<mlir::AffineExpr> extents; // of the loops
};

struct RowRun {
  size_t first = 0, count = 0;                  // range of the placement's stages
  llvm::SmallVector<mlir::AffineExpr> rows;     // extents of the loops over rows
  llvm::SmallVector<mlir::AffineExpr> elements; // extents of the loops along a row, in stages that store elements
  llvm::SmallVector<mlir::linalg::GenericOp> perRow, perElement; // ops of these stages
  llvm::SmallVector<mlir::Value> unstored;                       // values that no other stage reads
  llvm::SmallVector<RowRead> reads;                              // except those at indices that are data
  int64_t length = 0;                                            // longest row, at the kernel's bounds
  bool isInPlace = false;                                        // a result may share memory with rows that are read
};

/// Matches the run that begins with the kernel stage. Returns nullopt if one of its stages reads values of another
/// row, if the order of a reduction matters, or if neighbouring elements of a row are not neighbours in memory. A
/// single stage is a run if its rows may have `leastLength` elements.
std::optional<RowRun> findRowRun(const StageContext &context, int64_t leastLength = 16);

} // namespace kiln::cuda
