// SPDX-License-Identifier: Apache-2.0
//
// Patterns that tensor parallelism can split, and similar ones: a linear layer split by outputs and then one split by
// inputs, attention of projections on states (KV cache), tables of many rows.
#include "tests/fuzz/Generator.h"

#include <algorithm>

namespace kiln::fuzz {

int Generator::splittable() {
  switch (random.below(6)) {
  case 0:
    return vocabulary();
  case 1:
    return selfAttention(Op::attention);
  case 2:
    return cachedAttention();
  default:
    return perceptron();
  }
}

/// Whether the rows can be split evenly among ranks, if the options require that.
bool Generator::hasRowsOfRanks(const Extents &extents) const {
  return options.rowsOf == 1 || std::any_of(extents.begin(), extents.end() - 1, [&](const Dim &extent) {
           return extent.fixed() && extent.offset % options.rowsOf == 0;
         });
}

int Generator::projected() {
  const int x = choose([&](int id) {
    return isFloat(b.node(id).element) && !shapeOf(id).empty() && shapeOf(id).size() <= 4 &&
           shapeOf(id).back().fixed() && hasRowsOfRanks(shapeOf(id));
  });
  if (x >= 0 && random.percent(85))
    return x;
  Extents extents = shape(0, 2);
  if (options.rowsOf > 1)
    extents.push_back(options.rowsOf * random.between(1, 4));
  extents.push_back(fixedExtent());
  return fresh(floatType(extents));
}

int Generator::dense(int x, std::int64_t width) {
  Attributes attributes;
  attributes.weight_order = random.percent(40) ? WeightOrder::in_out : WeightOrder::out_in;
  return dense(x, width, attributes, random.percent(50));
}

int Generator::dense(int x, std::int64_t width, const Attributes &attributes, bool hasBias) {
  if (x < 0)
    return -1;
  const Dim in = shapeOf(x).back();
  const bool outFirst = attributes.weight_order == WeightOrder::out_in;
  std::vector<int> operands{x, parameter(floatType({outFirst ? Dim(width) : in, outFirst ? in : Dim(width)}))};
  if (hasBias && operands.back() >= 0)
    operands.push_back(parameter(floatType({width})));
  return tamed(make(Op::linear, operands, attributes), 8);
}

/// Normalises each head of [..., count * width] separately.
int Generator::normedHeads(int x, std::int64_t count) {
  if (x < 0 || shapeOf(x).size() > 5)
    return x;
  const Extents whole = shapeOf(x);
  Extents parts = whole;
  const Dim width = whole.back().offset / count;
  parts.back() = count;
  parts.push_back(width);
  const int heads = reshapedTo(x, parts), scale = parameter(floatType({width}));
  const int normed = random.percent(50) ? make(Op::rms_norm, {heads, scale})
                                        : make(Op::layer_norm, {heads, scale, parameter(floatType({width}))});
  return reshapedTo(tamed(normed, 8), whole);
}

int Generator::perceptron() { return perceptronOf(projected()); }

/// A plain or gated MLP, gated by a separate layer or by half of one layer; optionally with norms per head, scales,
/// constants, and a residual connection.
int Generator::perceptronOf(int x) {
  const std::int64_t count = random.of({1, 2, 2, 4, 4, 8}), width = random.of({1, 1, 2, 3, 4, 8, 16, 17});
  const std::int64_t hidden = count * width;
  const Op activation = random.of({Op::gelu, Op::relu, Op::silu, Op::tanh, Op::sigmoid});
  int h = -1;
  if (x < 0)
    return -1;
  if (const std::int64_t form = random.below(4); form == 0) {
    h = make(Op::mul, {make(activation, {dense(x, hidden)}), dense(x, hidden)});
  } else if (form == 1) {
    const int joint = dense(x, 2 * hidden);
    if (joint < 0)
      return -1;
    Extents half = shapeOf(joint);
    half.back() = hidden;
    Attributes first = alongAxis(static_cast<int>(half.size()) - 1), second = first;
    second.start = hidden;
    if (random.percent(50))
      std::swap(first, second);
    const Type type = floatType(half);
    h = make(Op::mul,
             {make(activation, {make(Op::slice, {joint}, first, type)}), make(Op::slice, {joint}, second, type)});
  } else {
    h = dense(x, hidden);
    h = random.percent(70) ? make(activation, {h}) : h;
  }
  if (random.percent(25))
    h = normedHeads(h, count);
  if (random.percent(25))
    h = make(Op::mul, {h, parameter(floatType({hidden}))});
  if (random.percent(15))
    h = scaled(h, 0.5);
  if (random.percent(10))
    h = make(Op::add, {h, dense(h, hidden)});
  const int y = dense(h, random.percent(70) ? shapeOf(x).back().offset : fixedExtent().offset);
  return y >= 0 && shapeOf(y) == shapeOf(x) && random.percent(60) ? tamed(make(Op::add, {x, y})) : y;
}

/// Attention of one sequence with a KV cache: keys and values are appended to states, possibly to the same state.
int Generator::cachedAttention() {
  const int keyHeads = static_cast<int>(random.of({1, 2, 2, 4})),
            heads = keyHeads * static_cast<int>(random.of({1, 2}));
  const int headDim = static_cast<int>(random.of({1, 2, 4, 8, 16}));
  int x = choose([&](int id) {
    return isFloat(b.node(id).element) && shapeOf(id).size() == 2 && shapeOf(id).back().fixed() &&
           shapeOf(id)[0].max() <= 130;
  });
  if (x < 0)
    x = fresh(floatType({extent(), fixedExtent()}));
  if (x < 0 || shapeOf(x)[0].max() > 130)
    return -1;
  const Dim rows = shapeOf(x)[0], all = rowsWith(rows);
  auto normed = [&](int x, int count) { return random.percent(25) ? normedHeads(x, count) : x; };
  const int q = normed(dense(x, std::int64_t(heads) * headDim), heads);
  const int k = appended(normed(dense(x, std::int64_t(keyHeads) * headDim), keyHeads), all);
  const int v = random.percent(80) ? appended(dense(x, std::int64_t(keyHeads) * headDim), all) : k;
  const int seen = attentionOf(Op::attention, q, k, v, heads, keyHeads);
  return random.percent(85) ? dense(seen, shapeOf(x).back().offset) : seen;
}

/// A table that is used for lookups, logits, or both.
int Generator::vocabulary() {
  const std::int64_t rows = random.of({8, 9, 16, 24, 31, 64, 100, 129}), width = random.of({1, 2, 2, 3, 4, 6});
  const int table = parameter(floatType({rows, width}));
  if (table < 0)
    return -1;
  const int form = static_cast<int>(random.below(3));
  int x = -1;
  if (form != 1) {
    x = make(Op::embedding, {drawnIndices(rows, shape(0, 2)), table});
    if (form == 0 || x < 0)
      return x;
    x = random.percent(50) ? perceptronOf(x) : x;
  } else {
    Extents extents = shape(0, 2);
    extents.push_back(width);
    x = ofType(floatType(extents));
  }
  return tamed(make(Op::linear, {x, table}));
}

} // namespace kiln::fuzz
