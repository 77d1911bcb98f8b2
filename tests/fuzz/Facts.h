// SPDX-License-Identifier: Apache-2.0
//
// Facts about a value's elements that hold without running the model: whether it is safe to divide by them, whether
// they are indices within a table, and their approximate magnitude, so that f32 sums keep enough precision.
#pragma once

#include <optional>
#include <vector>

#include "tests/fuzz/RandomGraph.h"
#include "tests/fuzz/Shapes.h"

namespace kiln::fuzz {

struct Facts {
  double low = -2, high = 2; // bounds of all elements, except for NaN and infinities
  double size = 2; // approximate magnitude of the largest elements; sums are taken as sums of independent terms
  std::optional<Dim> below{}; // for integers: a strict upper bound, perhaps tighter than `high`

  bool isWithin(double least, double most) const { return low >= least && high <= most; }
  /// Whether the elements are valid indices of an axis of this extent.
  bool areIndicesOf(const Dim &extent) const {
    return low >= 0 && (high < static_cast<double>(extent.min()) || (below && atLeast(extent, *below)));
  }
};

/// Returns the facts of elements in [low, high].
Facts between(double low, double high);
/// Returns the facts of 0, 1, ... below the extent.
Facts indicesBelow(const Dim &extent);

/// Returns what holds for the elements of both.
Facts hull(const Facts &a, const Facts &b);

/// Returns the facts of the node's result from those of its operands. Operations with a body and states are not
/// supported.
Facts factsOf(const Node &node, const std::vector<Type> &types, const std::vector<Facts> &operands);

/// Checks that every index is within its table and every length within its keys, for all inputs; returns the first
/// violation, or an empty string. Loops and states are iterated to a fixed point.
std::string checkIndices(const RandomModel &model);

} // namespace kiln::fuzz
