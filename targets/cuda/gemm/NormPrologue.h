// SPDX-License-Identifier: Apache-2.0
//
// Fuses a norm of a single row with the GEMVs of that row into one launch: each block computes the row into shared
// memory, which takes less time than another launch.
#pragma once

#include "targets/cuda/gemm/Match.h"
#include "targets/cuda/rows/FusedStages.h"

namespace kiln::cuda {

/// A skinny GEMM, and its position among the kernel stages.
struct RowProduct {
  StageContext context;
  Contraction contraction;
};

struct NormPrologue {
  StageContext context; // the run's first stage
  RowRun run;
  mlir::Value row; // input of the GEMVs
  int64_t length = 0;
  std::vector<RowProduct> products;             // with the same number of columns and the same weight layout
  llvm::SmallVector<mlir::Value> unstored = {}; // values that no other stage reads
};

/// Matches the norm that begins with the kernel stage, and its GEMVs, if the norm has one short row that nothing else
/// reads.
std::optional<NormPrologue> findNormPrologue(const StageContext &context);

/// The row in a block's shared memory, as f32.
class SharedRow {
public:
  /// Allocates the row in the builder's current kernel.
  SharedRow(tile::Builder &b, const NormPrologue &norm);
  /// Computes the row. All threads of the block must call this, and can read the whole row afterwards.
  mlir::LogicalResult compute(ElementEmitter &emitter, int64_t threads);
  /// Returns `count` elements from `first` on, which is a multiple of `count`.
  tile::Values read(tile::Value first, int64_t count);

private:
  tile::Builder &b;
  const NormPrologue &norm;
  tile::Value memory;
};

} // namespace kiln::cuda
