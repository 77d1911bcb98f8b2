// SPDX-License-Identifier: Apache-2.0
//
// Prefetches along a buffer inside of the loop that goes over it, put in after Halide has lowered the kernel.
#pragma once

#include "Halide.h"
#include <string>

namespace kiln::halide {

/// Each step of the innermost loops that read or store dense vectors of the buffer asks for cache lines that lie
/// `advance` elements behind those of the step.
struct StreamPrefetch {
  std::string buffer;
  int64_t advance = 0;
  /// > 0, for weights: so many requests a step, into the second cache. The row tiles of a panel, whose loop is named
  /// *.`rowLoop`, share out what they read, `advance` elements behind it, evenly, however many they are. 0: all lines
  /// of the step.
  int lines = 0;
  std::string rowLoop = "";
  /// Rows that are looked up: the buffer of their numbers, of which there are so many. Then each step asks for the same
  /// part of the row whose number lies `advance` numbers behind, or of the last one.
  std::string numbers = "";
  Halide::Expr count = {};
  /// Of several loops over the buffer, one after the other, only the last one asks.
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
  bool isInside = false; // of the kernel's statement
  std::string last;      // name of the loop that asks, if only one does
  Halide::Expr rowTile;  // number of the row tile in its panel; undefined outside of the loop over them
  Halide::Expr rowTiles; // how many there are
};

} // namespace kiln::halide
