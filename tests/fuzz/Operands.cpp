// SPDX-License-Identifier: Apache-2.0
//
// Draws extents, shapes, and values that serve as operands.
#include <algorithm>

#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

static Dim dimOf(const Symbol &symbol) {
  Dim dim;
  dim.factor = 1;
  dim.symbols[0] = symbol;
  return dim;
}

Dim Generator::fixedExtent() {
  const std::int64_t kind = random.below(100);
  if (kind < 2)
    return random.between(64, 130);
  if (kind < 3)
    return random.of({255, 256, 256, 257});
  if (kind < 12) {
    const int tile = random.of({8, 16, 32, 48});
    return tile + random.of({-1, 0, 1});
  }
  return random.of({1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7, 8, 11, 13, 16, 17});
}

Dim Generator::namedExtent() {
  if (symbols.empty())
    return fixedExtent();
  const Dim a = dimOf(random.from(symbols)), b = dimOf(random.from(symbols));
  switch (random.below(12)) {
  case 0:
    return a + 1;
  case 1:
    return a + static_cast<int>(random.between(2, 4));
  case 2:
    return a * static_cast<int>(random.between(2, 4));
  case 3:
    return (a * b).max() <= 300 ? a * b : a;
  case 4:
    return a.min() > 1 ? a - Dim(random.between(1, a.min() - 1)) : a * 2 + 1;
  default:
    return a;
  }
}

Dim Generator::extent() {
  if (random.percent(70))
    return random.from(palette);
  return random.percent(35) ? namedExtent() : fixedExtent();
}

int Generator::rank(int least, int most) {
  const int drawn = random.of({0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6, 6, 7, 8});
  return std::clamp(drawn, least, most);
}

Extents Generator::shape(int leastRank, int mostRank, bool fixed) {
  Extents result;
  std::int64_t elements = 1;
  for (int i = rank(leastRank, mostRank); i > 0; --i) {
    Dim dim = extent();
    for (int tries = 0; tries < 4 && ((fixed && !dim.fixed()) || elements * dim.max() > options.maxElements / 2);
         ++tries)
      dim = fixedExtent();
    if ((fixed && !dim.fixed()) || elements * dim.max() > options.maxElements / 2)
      dim = 1;
    elements *= dim.max();
    result.push_back(dim);
  }
  for (std::size_t i = result.size(); i > 1; --i) // small extents are not always the last ones
    std::swap(result[i - 1], result[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  return result;
}

Attributes Generator::alongAxis(int axis) {
  Attributes attributes;
  attributes.axis = axis;
  return attributes;
}

int Generator::choose(const std::function<bool(int)> &suits) {
  std::vector<int> all, unused;
  for (int id : b.visible())
    if (suits(id)) {
      all.push_back(id);
      if (b.uses(id) == 0 && b.isHere(id))
        unused.push_back(id);
    }
  if (all.empty())
    return -1;
  if (!unused.empty() && random.percent(60))
    return random.percent(60) ? unused.back() : random.from(unused);
  return random.percent(30) ? all.back() : random.from(all);
}

int Generator::number(double value, ElementType element) {
  Attributes attributes;
  attributes.values = {value};
  return make(Op::constant, {}, std::move(attributes), {element, {}});
}

int Generator::constant(const Type &type, double low, double high) {
  Attributes attributes;
  const std::int64_t count = mostElements(type.shape);
  const bool isSplat = random.percent(20);
  for (std::int64_t i = 0; i < count; ++i) {
    double value = 0;
    if (isSplat && i > 0)
      value = attributes.values[0];
    else if (type.element == ElementType::boolean)
      value = static_cast<double>(random.below(2));
    else if (!isFloat(type.element))
      value = static_cast<double>(random.between(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)));
    else if (low < 0 && random.percent(15))
      value = static_cast<float>(random.of({0.0, -0.0, 1e-30, -1e-30, 1e-8, 0.1, -1.0, 1.0, 1e-40}));
    else if (low < 0 && options.specialValues && random.percent(10))
      value = random.of({__builtin_inf(), -__builtin_inf(), __builtin_nan("")});
    else
      value = random.number(low, high);
    attributes.values.push_back(value);
  }
  return make(Op::constant, {}, std::move(attributes), type);
}

int Generator::parameter(const Type &type, bool isPositive) {
  std::vector<int> known;
  for (std::size_t i = 0; i < b.graph.parameters.size(); ++i) {
    const Parameter &parameter = b.graph.parameters[i];
    const bool suits = parameter.element == type.element &&
                       Extents(parameter.shape.begin(), parameter.shape.end()) == type.shape &&
                       (!isPositive || b.parameterRanges[parameter.leaf].low > 0);
    if (suits)
      known.push_back(static_cast<int>(i));
  }
  if (!known.empty() && random.percent(35))
    if (int id = b.useParameter(random.from(known)); id >= 0)
      return id;
  if (b.graph.parameters.size() >= 24)
    return -1;
  RandomModel::Input range{-1, 1};
  if (isPositive)
    range = {0.5, 1.5};
  return b.parameter(type, range, random.percent(30) ? 1 : 0);
}

int Generator::freshInteger(const Extents &shape, double low, double high) {
  const Type type{ElementType::i32, shape};
  if (isFixed(shape) && mostElements(shape) <= 40 && random.percent(40))
    return constant(type, low, high);
  if (b.graph.regions[b.entryRegion()].arguments.size() >= 14)
    return make(Op::expand, {number(high, ElementType::i32)}, {}, type);
  return b.input(type, {low, high, true}, between(low, high));
}

int Generator::fresh(const Type &type, bool isPositive) {
  if (type.element == ElementType::i32)
    return freshInteger(type.shape, 0, static_cast<double>(random.between(1, 9)));
  if (mostElements(type.shape) > options.maxElements)
    return -1;
  const bool canInput = b.graph.regions[b.entryRegion()].arguments.size() < 14, fixed = isFixed(type.shape);
  if (type.element == ElementType::boolean) {
    if (fixed && mostElements(type.shape) <= 40 && random.percent(40))
      return constant(type, 0, 1);
    if (canInput && random.percent(60))
      return b.input(type, {0, 1, true}, between(0, 1));
    return make(Op::less, {fresh(floatType(type.shape)), number(random.number(-1, 1), options.element)});
  }
  const double low = isPositive ? 0.25 : -2;
  std::int64_t kind = random.below(100);
  if (kind < 12 && fixed && mostElements(type.shape) <= 60)
    return constant(type, low, 2);
  if (kind < 35 && fixed)
    if (int id = parameter(type, isPositive); id >= 0)
      return id;
  if (kind >= 90 || !canInput) {
    const int scalar = number(isPositive ? 1.5 : random.of({0.0, 1.0, -0.5}), type.element);
    return make(Op::expand, {scalar}, {}, type);
  }
  return b.input(type, {low, 2}, between(low, 2));
}

int Generator::ofType(const Type &type) {
  if (random.percent(75)) {
    const int found = choose([&](int id) { return b.type(id) == type; });
    if (found >= 0)
      return found;
  }
  if (random.percent(30)) {
    const int found = choose([&](int id) {
      return b.node(id).element == type.element && sameCount(shapeOf(id), type.shape) && !type.shape.empty();
    });
    if (found >= 0)
      return reshapedTo(found, type.shape);
  }
  return fresh(type);
}

int Generator::floats(int leastRank, int mostRank) {
  if (random.percent(85)) {
    const int found = choose([&](int id) {
      const Type type = b.type(id);
      return isFloat(type.element) && type.rank() >= leastRank && type.rank() <= mostRank;
    });
    if (found >= 0)
      return found;
  }
  return fresh(floatType(shape(leastRank, mostRank)));
}

int Generator::integers(int leastRank, int mostRank) {
  if (random.percent(75)) {
    const int found = choose([&](int id) {
      const Type type = b.type(id);
      return type.element == ElementType::i32 && type.rank() >= leastRank && type.rank() <= mostRank;
    });
    if (found >= 0)
      return found;
  }
  const double low = random.percent(50) ? -5 : 0, high = static_cast<double>(random.between(1, 9));
  return freshInteger(shape(leastRank, mostRank), low, high);
}

int Generator::condition(const Extents &like) {
  const Type wanted{ElementType::boolean, like};
  if (random.percent(60)) {
    const int found =
        choose([&](int id) { return b.node(id).element == ElementType::boolean && broadcasts(shapeOf(id), like); });
    if (found >= 0)
      return found;
  }
  if (random.percent(50)) {
    const int left = ofType(floatType(like));
    if (left < 0)
      return -1;
    const int right = besides(b.type(left), false);
    return make(Op::less, {left, right});
  }
  Extents some = like;
  if (!some.empty() && random.percent(40))
    some[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(some.size())))] = 1;
  return fresh({ElementType::boolean, some});
}

int Generator::anything(int leastRank, int mostRank) {
  const int found = choose([&](int id) {
    const int rank = b.type(id).rank();
    return rank >= leastRank && rank <= mostRank;
  });
  if (found >= 0 && random.percent(85))
    return found;
  switch (random.below(6)) {
  case 0:
    return integers(leastRank, std::max(leastRank, std::min(mostRank, 3)));
  case 1:
    return fresh({ElementType::boolean, shape(leastRank, std::max(leastRank, std::min(mostRank, 3)))});
  default:
    return fresh(floatType(shape(leastRank, mostRank)));
  }
}

int Generator::besides(const Type &type, bool mayGrow) {
  if (random.percent(15) && type.element != ElementType::boolean)
    return number(isFloat(type.element) ? random.number(-2, 2) : static_cast<double>(random.between(-3, 5)),
                  type.element);
  if (random.percent(60)) {
    const int found = choose([&](int id) {
      if (b.node(id).element != type.element || !broadcasts(shapeOf(id), type.shape))
        return false;
      const Extents both = broadcast(shapeOf(id), type.shape);
      return mayGrow ? mostElements(both) <= options.maxElements : both == type.shape;
    });
    if (found >= 0)
      return found;
  }
  Extents other = type.shape;
  while (!other.empty() && random.percent(30))
    other.erase(other.begin());
  for (Dim &dim : other)
    if (random.percent(20))
      dim = 1;
    else if (mayGrow && dim == Dim(1) && random.percent(50))
      dim = extent();
  if (mayGrow && other.size() == type.shape.size() && other.size() < largest_rank && random.percent(15))
    other.insert(other.begin(), extent());
  if (mostElements(broadcast(other, type.shape)) > options.maxElements)
    return ofType(type);
  return ofType({type.element, other});
}

int Generator::drawnIndices(const Dim &extent, const Extents &shape) {
  const Type type{ElementType::i32, shape};
  const auto least = static_cast<double>(extent.min() - 1);
  if (isFixed(shape) && mostElements(shape) <= 40 && random.percent(30))
    return constant(type, 0, least);
  if (b.graph.regions[b.entryRegion()].arguments.size() >= 14)
    return make(Op::expand, {number(least, ElementType::i32)}, {}, type);
  return b.input(type, {0, static_cast<double>(extent.max() - 1), true, limitText(extent)}, indicesBelow(extent));
}

int Generator::indices(const Dim &extent, const Extents *like) {
  const auto suits = [&](int id) {
    return b.node(id).element == ElementType::i32 && b.facts(id).areIndicesOf(extent) &&
           (like ? shapeOf(id) == *like : shapeOf(id).size() <= 2);
  };
  if (random.percent(55))
    if (int found = choose(suits); found >= 0)
      return found;
  if (!like && random.percent(40)) {
    switch (random.below(3)) {
    case 0: { // argmax
      const int x = choose([&](int id) {
        return b.node(id).element != ElementType::boolean && !shapeOf(id).empty() && shapeOf(id).size() <= 3 &&
               atLeast(extent, shapeOf(id).back());
      });
      if (x >= 0)
        return make(Op::argmax, {x}, alongAxis(static_cast<int>(shapeOf(x).size()) - 1));
      break;
    }
    case 1: { // the predecessor, clamped at 0
      const int x = choose(suits);
      if (x >= 0) {
        const int before = make(Op::sub, {x, number(1, ElementType::i32)});
        return make(Op::maximum, {before, number(0, ElementType::i32)});
      }
      break;
    }
    default: {
      const int x = choose([&](int id) { return !shapeOf(id).empty() && atLeast(extent, shapeOf(id)[0]); });
      if (x >= 0)
        return make(Op::positions, {x}, alongAxis(0));
    }
    }
  }
  return drawnIndices(extent, like ? *like : shape(0, 2));
}

int Generator::lengths(const Extents &shape, const Dim &most) {
  Dim limit = most;
  limit.offset += 1;
  const int found = choose([&](int id) {
    const Facts &facts = b.facts(id);
    return b.node(id).element == ElementType::i32 && shapeOf(id) == shape && facts.low >= 0 &&
           (facts.high <= static_cast<double>(most.min()) || (facts.below && atLeast(limit, *facts.below)));
  });
  if (found >= 0 && random.percent(70))
    return found;
  const Type type{ElementType::i32, shape};
  if (isFixed(shape) && mostElements(shape) <= 40 && random.percent(20))
    return constant(type, 0, static_cast<double>(most.min()));
  if (b.graph.regions[b.entryRegion()].arguments.size() >= 14)
    return make(Op::expand, {number(1, ElementType::i32)}, {}, type);
  Facts facts = between(0, static_cast<double>(most.max()));
  facts.below = limit;
  return b.input(type, {0, facts.high, true, limitText(limit)}, facts);
}

} // namespace kiln::fuzz
