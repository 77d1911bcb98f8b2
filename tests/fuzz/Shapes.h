// SPDX-License-Identifier: Apache-2.0
//
// A second implementation of the rules of dsl/SPEC.md, at run time and without the compiler: the result types of
// operations, and whether a graph is one that a trace could produce. A difference between the two implementations is a
// bug in one of them.
#pragma once

#include <functional>
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
/// Returns the number of elements with the largest extents.
std::int64_t mostElements(const Extents &shape);
/// For example "f32[T 1..17, 4]".
std::string textOf(const Type &type);

/// Whether a >= b for every value of the named extents, as far as the DSL can prove it.
bool atLeast(const Dim &a, const Dim &b);
bool broadcasts(const Extents &a, const Extents &b);
Extents broadcast(const Extents &a, const Extents &b);
/// Returns the dimension with another one in the place of each symbol.
Dim substituted(const Dim &dim, const std::function<Dim(const Symbol &)> &by);
/// Whether the products of the extents are equal for every value of the named ones, as far as the DSL can prove it.
bool sameCount(const Extents &a, const Extents &b);
/// Returns the number of windows along an axis, or nothing if it is not a valid extent.
std::optional<Dim> windowCount(const Dim &extent, int kernel, int stride, int padding, int dilation);

/// Infers the type of `node`. Only the operation, the attributes, and the parts of the type that the operation states
/// are read: the element of sources, the shape of reshape, expand, slice, resize_bilinear, sinusoidal, state and
/// append. If a rule is broken, returns nothing and sets `why`. check() handles operations with a body, result and
/// store.
std::optional<Type> inferType(const Node &node, const std::vector<Type> &operands, std::string &why);

/// Checks whether the graph is one that a trace could produce: every rule, and consistent numbers, regions, scopes,
/// symbols and states. Returns the first error, or an empty string.
std::string check(const Graph &graph);

} // namespace kiln::fuzz
