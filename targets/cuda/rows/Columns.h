// SPDX-License-Identifier: Apache-2.0
//
// Matches reductions along axes that are not the innermost one, so that neighbouring elements in memory belong to
// different results, and the run of row reductions that reads these results: the sums of the channels of an image, and
// of groups of them.
#pragma once

#include "targets/cuda/rows/FusedStages.h"

namespace kiln::cuda {

/// A reduction whose results are outer x columns, both flattened, the last loop innermost.
struct Columns {
  mlir::linalg::GenericOp op;
  llvm::SmallVector<unsigned> outer, columns, reduced; // loops of `op`
  llvm::SmallVector<unsigned> stageLoops;              // for each loop of `op`, the loop of the stage's op
  mlir::AffineExpr outerCount, columnCount, length;
  int64_t leastOuter = 0, mostOuter = 0, mostColumns = 0, mostLength = 0;

  // The stages that read the results, each of whose rows is `width` consecutive columns.
  std::optional<RowRun> run;
  int64_t width = 0; // 0: unknown, or there are several outer indices in a row

  /// Whether a block that has all columns of a row can compute the row.
  bool hasWholeRows() const { return run && width > 0; }
};

/// Returns nullopt if the stage has no such reduction, has others, or if the reduction's order matters.
std::optional<Columns> findColumns(const StageContext &context);

} // namespace kiln::cuda
