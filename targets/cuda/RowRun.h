// SPDX-License-Identifier: Apache-2.0
//
// Consecutive steps that work along the same rows, so that whoever has a row can do all of them: a softmax's maximum,
// sum and quotient, a norm's moments and its elements.
#pragma once

#include "targets/cuda/Strategy.h"
#include <optional>

namespace kiln::cuda {

struct RowRun {
  size_t first = 0, count = 0;                  // of the placement's steps
  llvm::SmallVector<mlir::AffineExpr> rows;     // extents of the loops over rows
  llvm::SmallVector<mlir::AffineExpr> elements; // of the loops along a row, of those steps that store elements
  llvm::SmallVector<mlir::linalg::GenericOp> perRow, perElement; // the steps' ops
  llvm::SmallVector<mlir::Value> unstored;                       // what no other step reads
  int64_t length = 0;                                            // of the longest row, at the kernel's bounds
  bool isInPlace = false;                                        // a result may be where rows are read
};

/// The run that begins with the step. None if a step of it reads what another row's is, if the order of a reduction
/// matters, or if its rows do not lie in memory one after the other.
std::optional<RowRun> findRowRun(const StepContext &context);

} // namespace kiln::cuda
