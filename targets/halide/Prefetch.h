// SPDX-License-Identifier: Apache-2.0
//
// Prefetches of a weight inside of the loop that multiplies with it, put in after Halide has lowered the kernel.
#pragma once

#include "Halide.h"
#include <string>

namespace kiln::halide {

/// Each step of the loops over k asks for cache lines that lie `advance` elements behind those that it reads. With
/// `lines` > 0 these are so many a step: the row tiles of a panel, whose loop is named *.`rowLoop`, ask for the first
/// lines of every step, the next ones, and so on, until all are asked for. With 0 each step asks for all.
struct WeightPrefetch {
  std::string buffer;
  int64_t advance = 0;
  int lines = 0;
  std::string rowLoop;
};

class PrefetchWeights : public Halide::Internal::IRMutator {
public:
  explicit PrefetchWeights(WeightPrefetch prefetch) : prefetch(std::move(prefetch)) {}

private:
  using IRMutator::visit;
  Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

  WeightPrefetch prefetch;
  Halide::Expr rowTile; // number of the row tile in its panel; undefined outside of the loop over them
};

} // namespace kiln::halide
