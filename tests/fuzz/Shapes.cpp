// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of extents, and the operations whose result shape is an operand's or is stated.
#include "tests/fuzz/Shapes.h"

#include <algorithm>

#include "kiln/frequencies.h"
#include "kiln/text.h"
#include "tests/fuzz/ShapesParts.h"

namespace kiln::fuzz {

std::int64_t mostElements(const Extents &shape) {
  std::int64_t product = 1;
  for (const Dim &dim : shape)
    if (__builtin_mul_overflow(product, dim.max(), &product))
      return INT64_MAX;
  return product;
}

std::string textOf(const Type &type) { return Text().put(type.element).put(type.shape).data(); }

static bool isWithin(const Dim &whole, std::int64_t start, const Dim &extent) {
  if (start < 0)
    return false;
  if (Dim::addable(whole, extent))
    return (whole - extent).min() >= start;
  return start + extent.max() <= whole.min();
}

bool atLeast(const Dim &a, const Dim &b) { return a.declared_at_least(b) || isWithin(a, 0, b); }

bool broadcasts(const Extents &a, const Extents &b) {
  for (std::size_t i = 1; i <= a.size() && i <= b.size(); ++i) {
    const Dim &x = a[a.size() - i], &y = b[b.size() - i];
    if (!(x == y) && !(x == Dim(1)) && !(y == Dim(1)))
      return false;
  }
  return true;
}

Extents broadcast(const Extents &a, const Extents &b) {
  Extents result = a.size() >= b.size() ? a : b;
  const Extents &other = a.size() >= b.size() ? b : a;
  for (std::size_t i = 1; i <= other.size(); ++i)
    if (result[result.size() - i] == Dim(1))
      result[result.size() - i] = other[other.size() - i];
  return result;
}

Dim substituted(const Dim &dim, const std::function<Dim(const Symbol &)> &by) {
  Dim sum(dim.offset);
  for (int i = 0; i < dim.terms(); ++i) {
    Dim product(i == 0 ? dim.factor : dim.second);
    for (int k = 2 * i; k < 2 * i + 2; ++k)
      if (dim.symbols[k].present())
        product = product * by(dim.symbols[k]);
    sum = sum + product;
  }
  return sum;
}

/// Sums, such as T + 1, are not multiplied out: each must have an equal one on the other side.
bool sameCount(const Extents &a, const Extents &b) {
  struct Product {
    std::int64_t factor = 1;
    std::vector<std::string> symbols, sums;
  };
  auto product = [](const Extents &shape) {
    Product result;
    for (const Dim &dim : shape) {
      if (!dim.fixed() && (dim.offset != 0 || dim.second != 0)) {
        result.sums.push_back(Text().put(dim).data());
        continue;
      }
      result.factor *= dim.fixed() ? dim.offset : dim.factor;
      for (const Symbol &symbol : dim.symbols)
        if (symbol.present())
          result.symbols.push_back(symbol.name);
    }
    std::sort(result.symbols.begin(), result.symbols.end());
    std::sort(result.sums.begin(), result.sums.end());
    return result;
  };
  const Product x = product(a), y = product(b);
  return x.factor == y.factor && x.symbols == y.symbols && x.sums == y.sums;
}

std::optional<Dim> windowCount(const Dim &extent, int kernel, int stride, int padding, int dilation) {
  if (kernel < 1 || stride < 1 || dilation < 1 || padding < 0 || extent.factor % stride != 0 ||
      extent.second % stride != 0)
    return {};
  Dim room = extent;
  room.offset += 2 * std::int64_t(padding) - std::int64_t(dilation) * (kernel - 1) - 1;
  if (room.min() < 0)
    return {};
  // The factors of the symbols are multiples of the stride, so only the offset is rounded, downwards.
  std::int64_t rounded = room.offset >= 0 ? room.offset / stride : -((stride - 1 - room.offset) / stride);
  room.offset = rounded + 1;
  room.factor /= stride;
  room.second /= stride;
  if (room.fixed())
    return Dim(room.offset);
  return room.min() >= 1 ? std::optional(room) : std::nullopt;
}

std::optional<Type> inferElementwise(const Node &node, const std::vector<Type> &x, Rules &rules) {
  if (family_of(node.op) == Family::unary) {
    rules.require(isFloat(x[0].element), "unary_c1");
    return x[0];
  }
  if (node.op == Op::cast) {
    rules.require(isFloat(node.element) || node.element == ElementType::i32, "cast_c1");
    return Type{node.element, x[0].shape};
  }
  const bool isWhere = node.op == Op::where;
  const Type &a = x[isWhere ? 1 : 0], &b = x[isWhere ? 2 : 1];
  rules.require(a.element == b.element, "broadcast_c2");
  if (!rules.require(broadcasts(a.shape, b.shape), "broadcast_c1"))
    return {};
  Extents both = broadcast(a.shape, b.shape);
  if (isWhere) {
    rules.require(x[0].element == ElementType::boolean, "where_c1");
    if (!rules.require(broadcasts(x[0].shape, both), "broadcast_c1"))
      return {};
    return Type{a.element, broadcast(x[0].shape, both)};
  }
  const Family family = family_of(node.op);
  if (family == Family::logic)
    rules.require(a.element == ElementType::boolean, "logic_c1");
  else
    rules.require(a.element != ElementType::boolean, "arithmetic of booleans");
  return Type{family == Family::comparison ? ElementType::boolean : a.element, both};
}

std::optional<Type> inferRows(const Node &node, const std::vector<Type> &x, Rules &rules) {
  const int axis = node.attributes.axis;
  Type result = x[0];
  switch (node.op) {
  case Op::layer_norm:
    rules.require(x[0].rank() >= 1 && x[1].shape == Extents{x[0].shape.back()}, "layer_norm_c1");
    rules.require(x[2].shape == x[1].shape, "layer_norm_c2");
    rules.require(node.attributes.epsilon > 0, "layer_norm_c3");
    rules.require(isFloat(x[0].element) && x[1].element == x[0].element && x[2].element == x[0].element,
                  "layer_norm_c4");
    return result;
  case Op::rms_norm:
    rules.require(x[0].rank() >= 1 && x[1].shape == Extents{x[0].shape.back()}, "rms_norm_c1");
    rules.require(node.attributes.epsilon > 0, "rms_norm_c2");
    rules.require(isFloat(x[0].element) && x[1].element == x[0].element, "rms_norm_c3");
    return result;
  case Op::softmax:
  case Op::log_softmax:
    rules.require(axis >= 0 && axis < x[0].rank(), "softmax_c1");
    rules.require(isFloat(x[0].element), "softmax_c2");
    return result;
  default:
    break;
  }
  rules.require(x[0].element != ElementType::boolean, "a reduction of booleans");
  rules.require(node.op != Op::mean || isFloat(x[0].element), "reduction_c2");
  if (!rules.require(axis >= 0 && axis < x[0].rank(), "reduction_c1"))
    return {};
  if (node.op == Op::cumsum)
    return result;
  result.shape.erase(result.shape.begin() + axis);
  if (node.op == Op::argmax)
    result.element = ElementType::i32;
  return result;
}

std::optional<Type> inferSinusoidal(const Node &node, const Type &positions, Rules &rules) {
  const Attributes &a = node.attributes;
  const bool hasAxes = !a.pair_axes.empty();
  const bool isPosition = positions.element == ElementType::i32 || positions.element == ElementType::f32;
  if (!rules.require(isPosition && positions.rank() >= 1 + hasAxes, "sinusoidal_c1") ||
      !rules.require(!node.shape.empty() && node.shape.back().fixed() && node.shape.back().offset % 2 == 0,
                     "sinusoidal_c2"))
    return {};
  const auto pairs = static_cast<std::size_t>(node.shape.back().offset / 2);
  rules.require(!a.values.empty() || a.base > 1, "sinusoidal_c3");
  rules.require((a.values.empty() && !hasAxes) || a.values.size() == pairs, "a frequency for each pair");
  rules.require(!hasAxes || a.pair_axes.size() == pairs, "an axis for each pair");
  for (double value : a.values)
    rules.require(value >= 0 && value <= largest_frequency, "sinusoidal_c4");
  Type result{ElementType::f32, positions.shape};
  if (hasAxes) {
    // The frequencies have as many axes as the largest number says.
    const int count = 1 + *std::max_element(a.pair_axes.begin(), a.pair_axes.end());
    rules.require(positions.shape[0] == Dim(count) && count > 1, "sinusoidal_c5");
    rules.require(*std::min_element(a.pair_axes.begin(), a.pair_axes.end()) >= 0, "sinusoidal_c6");
    result.shape.erase(result.shape.begin());
  }
  result.shape.push_back(node.shape.back());
  return result;
}

static std::optional<Type> inferArgsort(const Node &node, const Type &x, Rules &rules) {
  const int axis = node.attributes.axis;
  rules.require(x.element != ElementType::boolean, "sort_c2");
  if (!rules.require(axis >= 0 && axis < x.rank() && static_cast<int>(node.shape.size()) == x.rank(), "sort_c1"))
    return {};
  const auto at = static_cast<std::size_t>(axis);
  Type result{ElementType::i32, x.shape};
  result.shape[at] = node.shape[at];
  const bool isCount = node.shape[at].fixed() && node.shape[at].offset >= 1 && atLeast(x.shape[at], node.shape[at]);
  rules.require(isCount || node.shape[at] == x.shape[at], "argsort_c1");
  return result;
}

std::optional<Type> inferSource(const Node &node, const std::vector<Type> &x, Rules &rules) {
  const Attributes &a = node.attributes;
  switch (node.op) {
  case Op::constant: {
    const bool fits = isFixed(node.shape) && static_cast<std::int64_t>(a.values.size()) == mostElements(node.shape);
    rules.require(fits, "constant_c1");
    for (double value : a.values) {
      if (isFloat(node.element))
        break;
      const bool isBoolean = node.element == ElementType::boolean;
      rules.require(value >= (isBoolean ? 0 : -2147483648.0) && value <= (isBoolean ? 1 : 2147483647.0) &&
                        value == static_cast<double>(static_cast<std::int64_t>(value)),
                    "values that the element type holds");
    }
    return typeOf(node);
  }
  case Op::embedding: {
    rules.require(x[0].element == ElementType::i32, "embedding_c1");
    rules.require(isFloat(x[1].element), "a table of numbers");
    if (!rules.require(x[1].rank() == 2, "embedding_c2"))
      return {};
    Type result{x[1].element, x[0].shape};
    result.shape.push_back(x[1].shape[1]);
    return result;
  }
  case Op::positions:
    if (!rules.require(a.axis >= 0 && a.axis < x[0].rank(), "positions_c1"))
      return {};
    return Type{ElementType::i32, {x[0].shape[a.axis]}};
  case Op::sinusoidal:
    return inferSinusoidal(node, x[0], rules);
  case Op::argsort:
    return inferArgsort(node, x[0], rules);
  case Op::index_add: {
    rules.require(x[1].element == ElementType::i32 && x[1].rank() == 1, "index_add_c1");
    rules.require(x[0].element == x[2].element &&
                      (x[0].element == ElementType::f32 || x[0].element == ElementType::i32),
                  "index_add_c4");
    rules.require(x[0].rank() == 2 && x[1].rank() == 1 && x[2].shape == Extents{x[1].shape[0], x[0].shape[1]},
                  "index_add_c3");
    return x[0];
  }
  default:
    return typeOf(node); // input, parameter, state: their type is stated elsewhere
  }
}

} // namespace kiln::fuzz
