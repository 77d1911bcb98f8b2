// SPDX-License-Identifier: Apache-2.0
//
// Prefetches along a buffer, inserted into the loop that traverses it after Halide has lowered the kernel.
#pragma once

#include "targets/halide/Compat.h"
#include <string>

namespace kiln::halide {

/// Each iteration of the innermost loops that read or store dense vectors of the buffer prefetches the cache lines
/// `advance` elements after those of the iteration.
struct StreamPrefetch {
  std::string buffer;
  int64_t advance = 0;
  /// > 0, for weights: the number of prefetches per iteration, into the L2 cache. The row tiles of a panel, whose loop
  /// is named *.`rowLoop`, evenly divide the prefetches of the data `advance` elements after what they read, however
  /// many tiles there are. 0: all lines of the iteration.
  int lines = 0;
  std::string rowLoop = "";
  /// For gathered rows: the buffer of the row numbers, and how many there are. Each iteration prefetches the same part
  /// of the row whose number comes `advance` numbers later, or of the last row.
  std::string numbers = "";
  Halide::Expr count = {};
  /// Only the last of several successive loops over the buffer prefetches.
  bool onlyLast = false;
};

class PrefetchStream : public Halide::Internal::IRMutator {
public:
  explicit PrefetchStream(StreamPrefetch prefetch) : prefetch(std::move(prefetch)) {}

  using IRMutator::mutate;
  Halide::Internal::Stmt mutate(const Halide::Internal::Stmt &stmt) override;

private:
  using IRMutator::visit;
  Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

  StreamPrefetch prefetch;
  bool isInside = false; // whether the visitor is inside of the kernel's statement
  std::string last;      // name of the loop that prefetches, if only one does
  Halide::Expr rowTile;  // number of the row tile in its panel; undefined outside of the loop over row tiles
  Halide::Expr rowTiles; // number of row tiles
};

} // namespace kiln::halide
