// SPDX-License-Identifier: Apache-2.0
//
// A norm of a single row and the products that it is for, in one launch: each block computes the row, which takes less
// time than another launch, and keeps it in shared memory.
#pragma once

#include "targets/cuda/ContractionMatch.h"
#include "targets/cuda/RowRun.h"

namespace kiln::cuda {

/// A product of few rows, and where it is among the steps.
struct RowProduct {
  StepContext context;
  Contraction contraction;
};

struct NormedRow {
  StepContext context; // of the run's first step
  RowRun run;
  mlir::Value row; // what the products are of
  int64_t length = 0;
  std::vector<RowProduct> products;             // of as many columns each, whose weights lie alike
  llvm::SmallVector<mlir::Value> unstored = {}; // what no other step reads
};

/// The norm that begins with the step and its products, if nothing else reads it and it is one short row.
std::optional<NormedRow> findNormedRow(const StepContext &context);

/// The row in a block's shared memory, as f32.
class SharedRow {
public:
  /// In the builder's current kernel.
  SharedRow(tile::Builder &b, const NormedRow &norm);
  /// All of the block's threads come here, and find the whole row afterwards.
  mlir::LogicalResult compute(Reader &reader, int64_t threads);
  /// So many elements from a multiple of their number on.
  tile::Values read(tile::Value first, int64_t count);

private:
  tile::Builder &b;
  const NormedRow &norm;
  tile::Value memory;
};

} // namespace kiln::cuda
