// SPDX-License-Identifier: Apache-2.0
//
// Masks of attention that follow from positions, in the form that the DSL's functions have in a graph: ALiBi, biases by
// distance, and documents in one sequence.
#include <limits>

#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

/// Returns the position of each key minus that of each query, i32 [queries, keys], or -1.
int Generator::distances(int queries, int keys) {
  const std::size_t batch = shapeOf(queries).size() - 2;
  const Dim rows = shapeOf(queries)[batch], columns = shapeOf(keys)[batch];
  const int along = static_cast<int>(batch);
  int atQuery = -1;
  if (rows == columns) {
    atQuery = make(Op::positions, {queries}, alongAxis(along));
  } else { // those of the last keys
    const int zeros = make(Op::expand, {number(0, ElementType::i32)}, {}, {ElementType::i32, {columns}});
    Attributes last = alongAxis(0);
    last.at_end = true;
    atQuery = make(Op::slice, {make(Op::positions, {zeros}, alongAxis(0))}, last, {ElementType::i32, {rows}});
  }
  const int atKey = make(Op::positions, {keys}, alongAxis(along));
  if (atQuery < 0 || atKey < 0)
    return -1;
  return make(Op::sub, {reshapedTo(atKey, {1, columns}), reshapedTo(atQuery, {rows, 1})});
}

/// Reshapes a mask [heads, queries, keys] so that it has an axis more than the queries; returns -1 for -1.
int Generator::maskByHead(int mask, int queries) {
  if (mask < 0)
    return -1;
  Extents shape(shapeOf(queries).size() - 2, 1);
  shape.insert(shape.end(), shapeOf(mask).begin(), shapeOf(mask).end());
  return reshapedTo(mask, shape);
}

/// The distance times a slope for each head.
int Generator::alibi(int queries, int keys, int heads) {
  const int distance = distances(queries, keys);
  if (distance < 0)
    return -1;
  const int turned = make(Op::sub, {number(0, ElementType::i32), distance});
  const int far = make(Op::maximum, {distance, turned});
  if (far < 0)
    return -1;
  const Type slopeType = floatType({heads});
  const int slopes = random.percent(60) ? constant(slopeType, 0, 1) : parameter(slopeType, true);
  const int negative = make(Op::mul, {reshapedTo(slopes, {heads, 1, 1}), number(-1, options.element)});
  Type type = b.type(far);
  type.element = options.element;
  return maskByHead(make(Op::mul, {make(Op::cast, {far}, {}, type), negative}), queries);
}

/// A row of a table by the distance, within bounds.
int Generator::distanceBias(int queries, int keys, int heads) {
  const int distance = distances(queries, keys);
  const std::int64_t farthest = random.of({0, 1, 3, 8});
  const int table = parameter(floatType({2 * farthest + 1, heads}));
  if (distance < 0 || table < 0)
    return -1;
  const auto most = static_cast<double>(farthest);
  const int above = make(Op::maximum, {distance, number(-most, ElementType::i32)});
  const int near = make(Op::minimum, {above, number(most, ElementType::i32)});
  const int row = make(Op::add, {near, number(most, ElementType::i32)});
  return maskByHead(transposed(make(Op::gather, {table, row}, alongAxis(0)), {2, 0, 1}), queries);
}

/// -infinity between different documents. Each query sees its own key, since it has the same position.
int Generator::documentsMask(int queries, int keys) {
  const Extents &shape = shapeOf(queries);
  const Extents batch(shape.begin(), shape.end() - 2);
  const Dim rows = shape[batch.size()], columns = shapeOf(keys)[batch.size()];
  auto with = [&](std::initializer_list<Dim> more) {
    Extents result = batch;
    result.insert(result.end(), more);
    return result;
  };
  const Dim count = random.between(1, 3);
  const int ends = make(Op::cumsum, {freshInteger(with({count}), 0, static_cast<double>(random.between(1, 9)))},
                        alongAxis(static_cast<int>(batch.size())));
  const int zeros = make(Op::expand, {number(0, ElementType::i32)}, {}, {ElementType::i32, {columns}});
  const int places = reshapedTo(make(Op::positions, {zeros}, alongAxis(0)), {columns, 1});
  if (ends < 0 || places < 0 || mostElements(with({columns, count})) > options.maxElements)
    return -1;
  const int isAfter = make(Op::less_equal, {reshapedTo(ends, with({1, count})), places});
  const int ofKey = make(Op::sum, {make(Op::cast, {isAfter}, {}, {ElementType::i32, with({columns, count})})},
                         alongAxis(static_cast<int>(batch.size()) + 1));
  Attributes last = alongAxis(static_cast<int>(batch.size()));
  last.at_end = true;
  const int ofQuery = rows == columns ? ofKey : make(Op::slice, {ofKey}, last, {ElementType::i32, with({rows})});
  if (ofQuery < 0)
    return -1;
  const int isSame = make(Op::equal, {reshapedTo(ofQuery, with({rows, 1})), reshapedTo(ofKey, with({1, columns}))});
  const int none = number(-std::numeric_limits<double>::infinity(), options.element);
  return make(Op::where, {isSame, number(0, options.element), none});
}

int Generator::maskByPosition(int queries, int keys, int heads) {
  const std::size_t rank = shapeOf(queries).size();
  const Dim rows = shapeOf(queries)[rank - 2], columns = shapeOf(keys)[rank - 2];
  if (!atLeast(columns, rows) || rows.max() * columns.max() * heads > options.maxElements)
    return -1;
  const std::int64_t kind = random.below(3);
  if (kind == 2)
    return documentsMask(queries, keys);
  if (rank >= largest_rank)
    return -1;
  return kind == 1 ? distanceBias(queries, keys, heads) : alibi(queries, keys, heads);
}

} // namespace kiln::fuzz
