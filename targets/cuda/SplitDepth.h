// SPDX-License-Identifier: Apache-2.0
//
// Products of few tiles and a long depth: blocks share the depth of a tile, so that there are enough of them. Their
// partial sums go to scratch memory, and a second launch adds them, always in the same order, and does the epilogue.
#pragma once

#include "targets/cuda/ContractionMatch.h"

namespace kiln::cuda {

/// Where partial sums lie in scratch memory, in bytes: behind what the kernel keeps there. Launches are one after the
/// other, so all steps can share it.
int64_t partialSumsAt(const StepContext &context);

class SplitDepth {
public:
  /// Into at most `wanted` parts: fewer where the partial sums of that would take more than 64 MiB, or where the depth
  /// has fewer than `stepDepth` for each.
  SplitDepth(const StepContext &context, const Contraction &contraction, int64_t wanted, int64_t stepDepth);

  int64_t parts() const { return count; }
  bool isSplit() const { return count > 1; }

  /// In the kernel of the parts: writes a part's sum of an element that exists. `batch`: its number.
  void store(tile::Builder &b, Reader &reader, tile::Value part, tile::Value batch, tile::Value row, tile::Value column,
             tile::Value sum) const;
  /// Appends the function and the launch that make the results of the partial sums, and the memory that those take.
  mlir::LogicalResult buildSecond(tile::Builder &b, DevicePlan &plan) const;

private:
  /// Its number among the partial sums, [part][batch][row][column].
  tile::Value partial(tile::Builder &b, Reader &reader, tile::Value part, tile::Value element) const;
  mlir::AffineExpr elements() const;

  const StepContext &context;
  const Contraction &contraction;
  int64_t count;
};

} // namespace kiln::cuda
