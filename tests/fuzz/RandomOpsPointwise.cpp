// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operations, row-wise operations and reductions.
#include <algorithm>

#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

int Generator::unary(Op op) {
  int x = floats();
  if (x < 0)
    return -1;
  const bool isExp = op == Op::exp || op == Op::expm1, isLog = op == Op::log || op == Op::log1p;
  if (isExp)
    x = b.facts(x).high > 3.5 ? tamed(random.percent(70) ? make(Op::tanh, {x}) : x, 3) : x;
  else if ((isLog || op == Op::sqrt) && !random.percent(4))
    x = op == Op::sqrt && b.facts(x).low >= 0 ? x : positive(x);
  if (x >= 0 && isExp && b.facts(x).high > 4)
    x = make(Op::sigmoid, {x});
  return tamed(make(op, {x}));
}

/// Draws dropout, stop_gradient or running_average, all of which are the identity in these entries.
int Generator::dropout(Op) {
  const int x = floats();
  if (x < 0)
    return -1;
  Attributes attributes;
  attributes.probability = attributes.rate = 0.1;
  if (x % 3 == 0)
    return tamed(make(Op::dropout, {x}, attributes));
  const int kept = x % 3 == 1 && isFixed(shapeOf(x)) ? parameter({b.node(x).element, shapeOf(x)}) : -1;
  return tamed(kept >= 0 ? make(Op::running_average, {kept, x, x}, attributes) : make(Op::stop_gradient, {x}));
}

int Generator::binary(Op op) {
  const bool isInteger = op != Op::div && random.percent(15);
  int left = isInteger ? integers(0, 8) : floats();
  if (left < 0)
    return -1;
  int right = random.percent(8) ? left : besides(b.type(left));
  if (right < 0)
    return -1;
  if (op == Op::div && !random.percent(4)) {
    const Facts &facts = b.facts(right);
    if (facts.low < 0.1 && facts.high > -0.1)
      right = positive(right);
  } else if (random.percent(50))
    std::swap(left, right);
  return tamed(make(op, {left, right}));
}

int Generator::comparison(Op op) {
  int left = random.percent(25) ? integers(0, 8) : floats();
  if (left < 0)
    return -1;
  int right = besides(b.type(left));
  if (random.percent(50))
    std::swap(left, right);
  return make(op, {left, right});
}

int Generator::logic(Op op) {
  const int left = condition(shape(0, 3));
  if (left < 0)
    return -1;
  const int right = condition(random.percent(50) ? shapeOf(left) : Extents());
  return right < 0 ? -1 : make(op, {left, right});
}

/// Casts i32 and booleans to floats, or floats and booleans to i32.
int Generator::cast(Op) {
  const std::int64_t kind = random.below(10);
  const int x = kind < 3 ? condition(shape(0, 3)) : kind < 6 ? integers(0, 8) : floats();
  if (x < 0)
    return -1;
  const bool toFloats = b.node(x).element == ElementType::i32 || (kind < 3 && random.percent(70));
  const Type type{toFloats ? options.element : ElementType::i32, shapeOf(x)};
  const int made = make(Op::cast, {x}, {}, type);
  return toFloats ? tamed(made) : made;
}

int Generator::where(Op) {
  const std::int64_t kind = random.below(10);
  const int left = kind == 0 ? condition(shape(0, 3)) : kind < 3 ? integers(0, 8) : floats();
  if (left < 0)
    return -1;
  const int right = b.node(left).element == ElementType::boolean ? condition(shapeOf(left)) : besides(b.type(left));
  if (right < 0)
    return -1;
  const int chosen = condition(broadcast(shapeOf(left), shapeOf(right)));
  const bool swapped = random.percent(50);
  return make(Op::where, {chosen, swapped ? right : left, swapped ? left : right});
}

int Generator::softmax(Op op) {
  int x = floats(1);
  if (x < 0)
    return -1;
  const int rank = static_cast<int>(shapeOf(x).size());
  const int axis = random.percent(50) ? rank - 1 : static_cast<int>(random.below(rank));
  return make(op, {tamed(x, 12)}, alongAxis(axis));
}

int Generator::norm(Op op) {
  int x =
      choose([&](int id) { return isFloat(b.node(id).element) && !shapeOf(id).empty() && shapeOf(id).back().fixed(); });
  if (x < 0 || random.percent(10)) {
    Extents rows = shape(0, 3);
    rows.push_back(fixedExtent());
    x = fresh(floatType(rows));
  }
  if (x < 0)
    return -1;
  // Weights of a dynamic width are values rather than parameters.
  const Type width{options.element, {shapeOf(x).back()}};
  const auto weight = [&](bool isPositive) {
    if (random.percent(75) && isFixed(width.shape))
      return parameter(width, isPositive);
    return random.percent(50) ? ofType(width) : fresh(width, isPositive);
  };
  Attributes attributes;
  attributes.epsilon = random.of({1e-5, 1e-6, 1e-12, 1e-3, 0.1});
  const int scale = weight(random.percent(30));
  if (scale < 0)
    return -1;
  if (op == Op::rms_norm)
    return tamed(make(op, {x, scale}, attributes));
  const int shift = random.percent(5) ? scale : weight(false);
  return tamed(make(op, {x, scale, shift}, attributes));
}

int Generator::reduction(Op op) {
  int x = op != Op::mean && random.percent(15) ? integers(1, 4) : floats(1);
  if (x < 0)
    return -1;
  const int axis = static_cast<int>(random.below(static_cast<int>(shapeOf(x).size())));
  return tamed(make(op, {x}, alongAxis(axis)));
}

} // namespace kiln::fuzz
