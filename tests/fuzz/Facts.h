// SPDX-License-Identifier: Apache-2.0
//
// What is known of a value's elements without running anything: whether they may be divided by, are indices within a
// table, and about how large they are, so that sums in f32 still say something.
#pragma once

#include <optional>
#include <vector>

#include "tests/fuzz/RandomGraph.h"
#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {

struct Facts {
  double low = -2, high = 2;  // every element lies between; NaN and infinities apart
  double size = 2;            // about how large the largest elements are, sums being of independent terms
  std::optional<Dim> below{}; // of integers: less than this extent, which `high` may not say

  bool isWithin(double least, double most) const { return low >= least && high <= most; }
  /// Whether the elements are indices of an axis of this extent.
  bool areIndicesOf(const Dim &extent) const {
    return low >= 0 && (high < static_cast<double>(extent.min()) || (below && atLeast(extent, *below)));
  }
};

/// Elements in [low, high].
Facts between(double low, double high);
/// 0, 1, ... below the extent.
Facts indicesBelow(const Dim &extent);

/// What holds for elements of both.
Facts hull(const Facts &a, const Facts &b);

/// Of the node's result, from those of its operands. Not for operations with a body and states.
Facts factsOf(const Node &node, const std::vector<Type> &types, const std::vector<Facts> &operands);

/// Whether every index is within its table and every length within its keys, whatever the inputs are; the first one
/// that may not be, or nothing. Loops and states are followed until nothing changes.
std::string checkIndices(const RandomModel &model);

} // namespace kiln::fuzz
