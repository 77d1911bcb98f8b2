// SPDX-License-Identifier: Apache-2.0
//
// Derives values that meet a constraint: bounded, positive, or of another shape.
#include <algorithm>

#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

int Generator::scaled(int value, double by) {
  if (value < 0)
    return -1;
  const int factor = number(by, b.node(value).element);
  if (random.percent(50))
    return make(Op::mul, {value, factor});
  return make(Op::mul, {factor, value});
}

int Generator::tamed(int value, double most) {
  if (value < 0 || !isFloat(b.node(value).element) || b.facts(value).size <= most)
    return value;
  const double size = b.facts(value).size;
  if (random.percent(50) && size < 1e6) {
    double by = 1;
    while (size * by > most / 4)
      by /= 2;
    return scaled(value, by);
  }
  return make(random.percent(70) ? Op::tanh : Op::sigmoid, {value});
}

int Generator::positive(int value) {
  if (value < 0 || b.facts(value).low > 0.05)
    return value;
  const ElementType element = b.node(value).element;
  switch (random.below(4)) {
  case 0: {
    const int square = make(Op::mul, {value, value});
    return tamed(make(Op::add, {square, number(random.of({0.1, 0.5, 1.0}), element)}));
  }
  case 1:
    return make(Op::maximum, {value, number(random.of({0.25, 0.5}), element)});
  case 2:
    return make(Op::exp, {tamed(value, 3)});
  default: {
    const int between = make(Op::sigmoid, {value});
    return make(Op::add, {between, number(random.of({0.125, 0.5}), element)});
  }
  }
}

int Generator::reshapedTo(int value, const Extents &shape) {
  if (value < 0 || shapeOf(value) == shape)
    return value;
  return make(Op::reshape, {value}, {}, {b.node(value).element, shape});
}

int Generator::transposed(int value, std::vector<int> permutation) {
  Attributes attributes;
  attributes.permutation = std::move(permutation);
  return make(Op::transpose, {value}, std::move(attributes));
}

int Generator::converted(int value, const Type &type) {
  if (value < 0 || b.type(value) == type)
    return value;
  if (b.node(value).element == ElementType::boolean && type.element != ElementType::boolean) {
    const int one = number(1, type.element), none = number(0, type.element);
    value = make(Op::where, {value, one, none});
  } else if (b.node(value).element != type.element) {
    if (type.element == ElementType::boolean)
      value = make(Op::less, {value, number(1, b.node(value).element)});
    else if (isFloat(type.element))
      value = converted(make(Op::less, {value, number(2, ElementType::i32)}), {type.element, shapeOf(value)});
    else
      value = converted(make(Op::less, {value, number(0, b.node(value).element)}), {type.element, shapeOf(value)});
  }
  if (value < 0)
    return -1;
  if (sameCount(shapeOf(value), type.shape))
    return reshapedTo(value, type.shape);
  if (type.element == ElementType::boolean)
    return broadcasts(shapeOf(value), type.shape) && broadcast(shapeOf(value), type.shape) == type.shape
               ? make(Op::expand, {value}, {}, type)
               : -1;
  // Axes that do not fit are reduced.
  while (value >= 0 && !(broadcasts(shapeOf(value), type.shape) && shapeOf(value).size() <= type.shape.size())) {
    const Op op = isFloat(type.element) && random.percent(60) ? Op::mean : Op::max;
    value = make(op, {value}, alongAxis(static_cast<int>(random.below(static_cast<int>(shapeOf(value).size())))));
  }
  if (value >= 0 && broadcast(shapeOf(value), type.shape) != type.shape)
    return -1;
  return value < 0 || shapeOf(value) == type.shape ? value : make(Op::expand, {value}, {}, type);
}

int Generator::bounded(int value, const Type &type, const Facts &facts) {
  value = converted(value, type);
  if (value < 0 || type.element == ElementType::boolean)
    return value;
  if (isFloat(type.element)) {
    if (b.facts(value).isWithin(facts.low, facts.high))
      return value;
    const int small = make(Op::tanh, {value});
    return facts.low <= -2 && facts.high >= 2 && random.percent(50) ? scaled(small, 2) : small;
  }
  // For integers, -x <= 0 follows from the lower bound, so max(-max(-x, -high), low) is within bounds.
  const Facts now = b.facts(value);
  if (facts.below ? now.low >= facts.low && now.below && *now.below == *facts.below
                  : now.isWithin(facts.low, facts.high))
    return value;
  if (facts.below)
    return -1;
  const int minusOne = number(-1, type.element), least = number(-facts.high, type.element);
  const int turned = make(Op::mul, {value, minusOne});
  const int cut = make(Op::maximum, {turned, least});
  const int again = make(Op::mul, {cut, minusOne});
  return make(Op::maximum, {again, number(facts.low, type.element)});
}

} // namespace kiln::fuzz
