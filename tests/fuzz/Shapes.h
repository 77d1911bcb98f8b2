// SPDX-License-Identifier: Apache-2.0
//
// The rules of dsl/SPEC.md once more, at run time and without the compiler: what an operation makes of its operands,
// and whether a whole graph is one that a trace could have left. What the two say differently is a mistake of one of
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/graph.h"

namespace kiln::fuzz {

using Extents = std::vector<Dim>;

struct Type {
  ElementType element = ElementType::f32;
  Extents shape;

  int rank() const { return static_cast<int>(shape.size()); }
  bool operator==(const Type &) const = default;
};

inline Type typeOf(const Node &node) { return {node.element, node.shape}; }
inline bool isFloat(ElementType element) { return floating(element); }
inline bool isFixed(const Extents &shape) {
  for (const Dim &dim : shape)
    if (!dim.fixed())
      return false;
  return true;
}
/// Of the largest extents.
std::int64_t mostElements(const Extents &shape);
/// "f32[T 1..17, 4]".
std::string textOf(const Type &type);

/// Whether a >= b for every value of the named extents, as the DSL sees it.
bool atLeast(const Dim &a, const Dim &b);
bool broadcasts(const Extents &a, const Extents &b);
Extents broadcast(const Extents &a, const Extents &b);
/// Whether the extents multiply to the same number for every value of the named ones, as the DSL sees it.
bool sameCount(const Extents &a, const Extents &b);
/// How many windows an axis has; nothing if that is no extent.
std::optional<Dim> windowCount(const Dim &extent, int kernel, int stride, int padding, int dilation);

/// The type of `node`, of which only the operation, the attributes, and what the operation leaves to its result are
/// read: the element of sources, the shape of reshape, expand, slice, resize_bilinear, sinusoidal, state and append. A
/// broken rule gives nothing, and `why`. Operations with a body, result and store are left to check().
std::optional<Type> inferType(const Node &node, const std::vector<Type> &operands, std::string &why);

/// Whether the graph is one that a trace leaves: every rule, and numbers, regions, scopes, symbols, states that fit.
/// The first thing wrong, or nothing.
std::string check(const Graph &graph);

} // namespace kiln::fuzz
