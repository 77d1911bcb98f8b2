// SPDX-License-Identifier: Apache-2.0
//
// Split-K for GEMMs with few tiles and a large K: several blocks share the K of a tile, so that there are enough
// blocks. Their partial sums go to scratch memory, and a second launch adds them, always in the same order, and
// applies the epilogue.
#pragma once

#include "targets/cuda/gemm/Match.h"

namespace kiln::cuda {

/// Returns the byte offset of partial sums in scratch memory, after the kernel's other data there. Launches run one
/// after the other, so all stages can share that memory.
int64_t partialSumsAt(const StageContext &context);

class SplitK {
public:
  /// Splits K into at most `wanted` parts: fewer if the partial sums would take more than 64 MiB, or if K is less than
  /// `leastK` for each part.
  SplitK(const StageContext &context, const Contraction &contraction, int64_t wanted, int64_t leastK);

  int64_t parts() const { return count; }
  bool isSplit() const { return count > 1; }

  /// Writes a part's sum of an element that exists. `batch`: the batch index.
  void store(tile::Builder &b, ElementEmitter &emitter, tile::Value part, tile::Value batch, tile::Value row,
             tile::Value column, tile::Value sum) const;
  /// Appends the function and the launch that reduce the partial sums to results, and reserves memory for the partial
  /// sums.
  mlir::LogicalResult buildSecond(tile::Builder &b, LaunchPlan &plan) const;

private:
  /// Returns the index in the partial sums, which are [part][batch][row][column].
  tile::Value partial(tile::Builder &b, ElementEmitter &emitter, tile::Value part, tile::Value element) const;
  mlir::AffineExpr elements() const;

  const StageContext &context;
  const Contraction &contraction;
  int64_t count;
};

} // namespace kiln::cuda
