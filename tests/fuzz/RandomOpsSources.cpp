// SPDX-License-Identifier: Apache-2.0
//
// Operations that start a computation.
#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

int Generator::sourceOf(Op op) {
  if (op == Op::input)
    return fresh(floatType(shape(0, 8)));
  if (op == Op::parameter) {
    const Extents extents = shape(0, random.percent(10) ? 8 : 4, true);
    return parameter(floatType(extents), random.percent(20));
  }
  const Extents extents = random.percent(30) ? Extents{} : shape(0, 3, true);
  if (mostElements(extents) > 80)
    return -1;
  const std::int64_t kind = random.below(10);
  const ElementType element = kind < 6 ? options.element : kind < 8 ? ElementType::i32 : ElementType::boolean;
  return constant({element, extents}, element == ElementType::i32 ? -5 : -2, element == ElementType::i32 ? 9 : 2);
}

int Generator::embedding(Op) {
  int table = -1;
  if (random.percent(25))
    table = choose([&](int id) { return isFloat(b.node(id).element) && shapeOf(id).size() == 2; });
  if (table < 0) {
    const Dim rows = random.percent(15) ? extent() : fixedExtent(), width = extent();
    const Type type = floatType({rows, width});
    table = isFixed(type.shape) && random.percent(85) ? parameter(type) : fresh(type);
  }
  if (table < 0)
    return -1;
  const Dim rows = shapeOf(table)[0];
  const int at = indices(rows);
  if (at < 0)
    return -1;
  // embedding_c3 is about the producer of the indices, not about their range.
  const Node *source = &b.node(at);
  if (source->attributes.at_end)
    source = &b.node(source->operands[0]);
  if (source->op == Op::positions && !atLeast(rows, source->shape[0]))
    return -1;
  return tamed(make(Op::embedding, {at, table}));
}

int Generator::positions(Op) {
  const int x = anything(1, 8);
  if (x < 0)
    return -1;
  return make(Op::positions, {x}, alongAxis(static_cast<int>(random.below(static_cast<int>(shapeOf(x).size())))));
}

/// Draws arange, or positions_in: the last of the counted positions.
int Generator::countedUp(Op) {
  const Dim whole = random.percent(60) ? namedExtent() : extent();
  const int none = number(0, ElementType::i32);
  const int zeros = make(Op::expand, {none}, {}, {ElementType::i32, {whole}});
  const int all = make(Op::positions, {zeros}, alongAxis(0));
  if (all < 0 || random.percent(50))
    return all;
  Attributes attributes = alongAxis(0);
  attributes.at_end = true;
  const Dim part = random.percent(50) ? extent() : Dim(1);
  for (const Dim &some : {part, Dim(1)}) {
    bool isStated = some.fixed();
    for (int id : b.visible()) // a slice introduces no symbol
      for (const Dim &dim : shapeOf(id))
        isStated |= dim == some;
    if (isStated && atLeast(whole, some))
      return make(Op::slice, {all}, attributes, {ElementType::i32, {some}});
  }
  return -1;
}

/// Chooses a base or frequencies. If the positions can be split by their first axis, some pairs read other parts.
Attributes Generator::randomPairs(int pairs, const Extents &positions) {
  Attributes attributes;
  const bool hasAxes = positions.size() > 1 && positions[0].fixed() && positions[0].offset > 1 &&
                       positions[0].offset <= pairs && random.percent(70);
  if (!hasAxes && random.percent(60)) {
    attributes.base = random.of({10000.0, 10000.0, 100.0, 1.5, 500000.0});
    return attributes;
  }
  for (int i = 0; i < pairs; ++i) {
    attributes.values.push_back(random.of({1.0, 0.5, 0.25, 0.1, 0.0, 3.5, 1e-3}));
    // Each axis has a pair, so that the frequencies state the number of axes.
    if (hasAxes)
      attributes.pair_axes.push_back(
          i < positions[0].offset ? i : static_cast<int>(random.below(static_cast<int>(positions[0].offset))));
  }
  return attributes;
}

/// f32 positions are small, since errors of large ones are large angles.
int Generator::sinusoidal(Op) {
  const bool isOfFloats = random.percent(40);
  int at = choose([&](int id) {
    const Node &node = b.node(id);
    return !node.shape.empty() && node.shape.size() <= 3 && mostElements(node.shape) <= 64 &&
           (isOfFloats ? node.element == ElementType::f32 && b.facts(id).isWithin(-100, 100)
                       : node.element == ElementType::i32);
  });
  if (at < 0)
    at = random.percent(50) ? countedUp(Op::positions) : freshInteger(shape(1, 3), 0, 40);
  if (at < 0)
    return -1;
  const int pairs = static_cast<int>(random.of({1, 2, 3, 4, 5, 8, 8, 16, 17, 32}));
  Extents extents = shapeOf(at);
  Attributes attributes = randomPairs(pairs, extents);
  if (!attributes.pair_axes.empty())
    extents.erase(extents.begin());
  extents.push_back(2 * pairs);
  if (mostElements(extents) > 4096)
    return -1;
  return make(Op::sinusoidal, {at}, attributes, {ElementType::f32, extents});
}

} // namespace kiln::fuzz
