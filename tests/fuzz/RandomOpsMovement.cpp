// SPDX-License-Identifier: Apache-2.0
//
// Operations that move elements.
#include <algorithm>

#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

int Generator::reshape(Op) {
  const int x = anything();
  if (x < 0)
    return -1;
  Extents to = shapeOf(x);
  for (int i = static_cast<int>(random.between(1, 3)); i > 0; --i) {
    const std::size_t rank = to.size();
    const auto at = static_cast<std::size_t>(rank == 0 ? 0 : random.below(static_cast<std::int64_t>(rank)));
    switch (random.below(4)) {
    case 0: // merge two neighbours
      if (rank >= 2 && at + 1 < rank && Dim::multipliable(to[at], to[at + 1])) {
        const Dim joined = to[at] * to[at + 1];
        if (!joined.fixed() && (joined.offset != 0 || joined.second != 0))
          break; // sameCount() does not multiply sums out
        to[at] = joined;
        to.erase(to.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
      break;
    case 1: // split one dimension
      if (rank > 0 && rank < largest_rank) {
        Dim &dim = to[at];
        const std::int64_t number = dim.fixed() ? dim.offset : dim.offset == 0 && dim.second == 0 ? dim.factor : 1;
        std::vector<int> divisors;
        for (int k = 2; k <= number && k < 40; ++k)
          if (number % k == 0)
            divisors.push_back(k);
        Dim first = 1;
        if (!divisors.empty()) {
          first = random.from(divisors);
          if (dim.fixed())
            dim = dim.offset / first.offset;
          else
            dim.factor /= first.offset;
        } else if (!dim.fixed() && dim.degree() == 2 && dim.offset == 0 && dim.second == 0) {
          Dim second = dim;
          second.symbols[0] = dim.symbols[1];
          second.symbols[1] = Symbol();
          second.factor = 1;
          dim.symbols[1] = Symbol();
          first = second;
        }
        const bool isBefore = random.percent(50);
        to.insert(to.begin() + static_cast<std::ptrdiff_t>(at) + !isBefore, first);
      }
      break;
    case 2: // insert a dimension of 1
      if (rank < largest_rank)
        to.insert(to.begin() +
                      static_cast<std::ptrdiff_t>(rank == 0 ? 0 : random.below(static_cast<std::int64_t>(rank) + 1)),
                  Dim(1));
      break;
    default: // remove a dimension of 1, or permute
      if (rank > 0 && to[at] == Dim(1))
        to.erase(to.begin() + static_cast<std::ptrdiff_t>(at));
      else if (rank > 1 && random.percent(50))
        std::swap(to[at], to[(at + 1) % rank]);
    }
  }
  return make(Op::reshape, {x}, {}, {b.node(x).element, to});
}

int Generator::expand(Op) {
  const int x = anything();
  if (x < 0)
    return -1;
  Extents to = shapeOf(x);
  for (Dim &dim : to)
    if (dim == Dim(1) && random.percent(70))
      dim = extent();
  while (to.size() < largest_rank && random.percent(to.size() == shapeOf(x).size() ? 60 : 25))
    to.insert(to.begin(), extent());
  return make(Op::expand, {x}, {}, {b.node(x).element, to});
}

int Generator::transpose(Op) {
  const int x = anything(random.percent(5) ? 0 : 2);
  if (x < 0)
    return -1;
  std::vector<int> permutation;
  for (int i = 0; i < static_cast<int>(shapeOf(x).size()); ++i)
    permutation.push_back(i);
  const std::size_t rank = permutation.size();
  if (rank >= 2 && random.percent(30))
    std::swap(permutation[rank - 1], permutation[rank - 2]);
  else
    for (std::size_t i = rank; i > 1; --i)
      std::swap(permutation[i - 1], permutation[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  return transposed(x, permutation);
}

int Generator::concat(Op) {
  const int x = anything(1);
  if (x < 0)
    return -1;
  int axis = static_cast<int>(random.below(static_cast<int>(shapeOf(x).size())));
  const bool prefersDynamic = random.percent(50); // sums of two dynamic extents are rare otherwise
  for (std::size_t i = 0; prefersDynamic && i < shapeOf(x).size(); ++i)
    if (!shapeOf(x)[i].fixed())
      axis = static_cast<int>(i);
  const auto at = static_cast<std::size_t>(axis);
  std::vector<int> operands{x};
  Dim sum = shapeOf(x)[at];
  for (int i = static_cast<int>(random.of({1, 1, 1, 1, 2, 2, 3, 0})); i > 0; --i) {
    Extents extents = shapeOf(x);
    if (random.percent(60)) {
      const Dim other = !sum.fixed() && random.percent(80) ? namedExtent() : extent();
      extents[at] = Dim::addable(sum, other) ? other : Dim(random.between(1, 4));
    }
    if (!Dim::addable(sum, extents[at]))
      extents[at] = 1;
    sum = sum + extents[at];
    const int next = random.percent(10) && shapeOf(x) == extents ? x : ofType({b.node(x).element, extents});
    if (next < 0 || mostElements(extents) > options.maxElements)
      return -1;
    operands.push_back(next);
  }
  if (random.percent(40))
    std::swap(operands.front(), operands.back());
  return make(Op::concat, operands, alongAxis(axis));
}

int Generator::slice(Op) {
  const int x = anything(1);
  if (x < 0)
    return -1;
  const int axis = static_cast<int>(random.below(static_cast<int>(shapeOf(x).size())));
  Extents to = shapeOf(x);
  Dim &part = to[static_cast<std::size_t>(axis)];
  const Dim whole = part;
  const std::int64_t most = whole.min();
  Attributes attributes = alongAxis(axis);
  attributes.at_end = random.percent(30);
  if (!whole.fixed() && random.percent(55)) {
    // All but a few elements, or another dynamic dimension that is not larger.
    std::int64_t fewer = random.below(std::min<std::int64_t>(most, 4));
    part = whole - Dim(fewer);
    if (random.percent(30)) {
      const Dim other = namedExtent();
      bool isStated = false;
      for (int id : b.visible())
        for (const Dim &dim : shapeOf(id))
          isStated |= dim == other;
      if (isStated && atLeast(whole, other) && (attributes.at_end || Dim::addable(whole, other)))
        part = other, fewer = Dim::addable(whole, other) ? (whole - other).min() : 0;
    }
    attributes.start = attributes.at_end || fewer < 1 ? 0 : random.between(0, fewer);
  } else {
    part = random.between(1, most);
    attributes.start = attributes.at_end ? 0 : random.between(0, most - part.offset);
  }
  return make(Op::slice, {x}, attributes, {b.node(x).element, to});
}

int Generator::gather(Op) {
  const int x = anything(1, 5);
  if (x < 0)
    return -1;
  const int axis = static_cast<int>(random.below(static_cast<int>(shapeOf(x).size())));
  const int at = indices(shapeOf(x)[static_cast<std::size_t>(axis)]);
  return make(Op::gather, {x, at}, alongAxis(axis));
}

int Generator::argsort(Op) {
  const int x = random.percent(25) ? integers(1, 4) : floats(1);
  if (x < 0)
    return -1;
  const int axis = static_cast<int>(random.below(static_cast<int>(shapeOf(x).size())));
  Attributes attributes = alongAxis(axis);
  attributes.reverse = random.percent(50);
  Extents to = shapeOf(x);
  Dim &count = to[static_cast<std::size_t>(axis)];
  if (random.percent(40))
    count = random.between(1, std::min<std::int64_t>(count.min(), 70));
  return make(Op::argsort, {x}, attributes, {ElementType::i32, to});
}

/// Adds rows to a table; some indices may be outside of it.
int Generator::indexAdd(Op) {
  const bool isWhole = random.percent(20) || options.element != ElementType::f32;
  const ElementType element = isWhole ? ElementType::i32 : ElementType::f32;
  int table = choose([&](int id) { return b.node(id).element == element && shapeOf(id).size() == 2; });
  if (table < 0 || random.percent(30))
    table = isWhole ? freshInteger(shape(2, 2), -5, 9) : fresh(floatType(shape(2, 2)));
  if (table < 0)
    return -1;
  const Dim count = extent(), height = shapeOf(table)[0], width = shapeOf(table)[1];
  const Extents line{count};
  int at = random.percent(50)
               ? indices(height, &line)
               : freshInteger(line, -2, static_cast<double>(std::min<std::int64_t>(height.max() + 2, 40)));
  if (at >= 0 && random.percent(15))
    at = converted(integers(1, 3), {ElementType::i32, line});
  const int rows = ofType({element, {count, width}});
  if (at < 0 || rows < 0)
    return -1;
  return tamed(make(Op::index_add, {table, at, rows}));
}

} // namespace kiln::fuzz
