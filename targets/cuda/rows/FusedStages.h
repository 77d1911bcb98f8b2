// SPDX-License-Identifier: Apache-2.0
//
// Consecutive kernel stages that work along the same rows, so that the threads that own a row can execute all of them:
// maximum, sum and quotient of a softmax, moments and elements of a norm.
#pragma once

#include "targets/cuda/plan/Strategy.h"
#include <optional>

namespace kiln::cuda {

struct RowRun {
  size_t first = 0, count = 0;                  // range of the placement's stages
  llvm::SmallVector<mlir::AffineExpr> rows;     // extents of the loops over rows
  llvm::SmallVector<mlir::AffineExpr> elements; // extents of the loops along a row, in stages that store elements
  llvm::SmallVector<mlir::linalg::GenericOp> perRow, perElement; // ops of these stages
  llvm::SmallVector<mlir::Value> unstored;                       // values that no other stage reads
  int64_t length = 0;                                            // longest row, at the kernel's bounds
  bool isInPlace = false;                                        // a result may share memory with rows that are read
};

/// Matches the run that begins with the kernel stage. Returns nullopt if one of its stages reads values of another
/// row, if the order of a reduction matters, or if neighbouring elements of a row are not neighbours in memory.
std::optional<RowRun> findRowRun(const StageContext &context);

} // namespace kiln::cuda
