// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and attention, as one operation and decomposed.
#include <algorithm>
#include <numeric>

#include "kiln/contraction.h"
#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

static std::vector<int> identity(int rank) {
  std::vector<int> permutation(static_cast<std::size_t>(rank));
  std::iota(permutation.begin(), permutation.end(), 0);
  return permutation;
}

static std::vector<int> lastTwoSwapped(std::size_t rank) {
  std::vector<int> permutation = identity(static_cast<int>(rank));
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return permutation;
}

int Generator::linear(Op) {
  int x = -1;
  if (random.percent(85))
    x = choose([&](int id) {
      return isFloat(b.node(id).element) && !shapeOf(id).empty() && (shapeOf(id).back().fixed() || b.uses(id) == 0);
    });
  if (x < 0) {
    Extents rows = shape(0, 3);
    rows.push_back(fixedExtent());
    x = fresh(floatType(rows));
  }
  if (x < 0)
    return -1;
  Attributes attributes;
  attributes.weight_order = random.percent(35) ? WeightOrder::in_out : WeightOrder::out_in;
  const Dim in = shapeOf(x).back(), out = random.percent(10) ? extent() : fixedExtent();
  const bool outFirst = attributes.weight_order == WeightOrder::out_in;
  const Type type = floatType({outFirst ? out : in, outFirst ? in : out});
  const int weight = isFixed(type.shape) && random.percent(88) ? parameter(type) : ofType(type);
  if (weight < 0)
    return -1;
  if (random.percent(45))
    return tamed(make(Op::linear, {x, weight}, attributes));
  const Type biasType = floatType({out});
  const int bias = isFixed(biasType.shape) && random.percent(85) ? parameter(biasType) : ofType(biasType);
  return tamed(make(Op::linear, {x, weight, bias}, attributes));
}

int Generator::groupedLinear(Op) {
  int x = -1;
  if (random.percent(70))
    x = choose(
        [&](int id) { return isFloat(b.node(id).element) && shapeOf(id).size() == 2 && shapeOf(id).back().fixed(); });
  if (x < 0)
    x = fresh(floatType({extent(), fixedExtent()}));
  if (x < 0)
    return -1;
  Attributes attributes;
  attributes.weight_order = random.percent(25) ? WeightOrder::in_out : WeightOrder::out_in;
  const std::int64_t groups = random.between(1, 6), in = shapeOf(x).back().offset, out = fixedExtent().offset;
  const bool outFirst = attributes.weight_order == WeightOrder::out_in;
  const Type type = floatType({groups * (outFirst ? out : in), outFirst ? in : out});
  if (mostElements(type.shape) > options.maxElements)
    return -1;
  const Type endsType{ElementType::i32, {groups}};
  const int weight = random.percent(85) ? parameter(type) : ofType(type);
  const int ends = random.percent(80) ? drawnIndices(shapeOf(x).front(), {groups}) : ofType(endsType);
  if (weight < 0 || ends < 0)
    return -1;
  if (random.percent(55))
    return tamed(make(Op::grouped_linear, {x, weight, ends}, attributes));
  const Type biasType = floatType({groups * out});
  const int bias = random.percent(85) ? parameter(biasType) : ofType(biasType);
  return bias < 0 ? -1 : tamed(make(Op::grouped_linear, {x, weight, ends, bias}, attributes));
}

/// A table for lookups that is also the weight of the logits.
int Generator::tiedLogits(Op) {
  const Dim rows = fixedExtent(), width = fixedExtent();
  const int table = parameter(floatType({rows, width}));
  if (table < 0)
    return -1;
  const int at = drawnIndices(rows, shape(0, 2));
  int x = make(Op::embedding, {at, table});
  if (x < 0)
    return -1;
  if (random.percent(50))
    x = make(random.of({Op::tanh, Op::gelu, Op::relu}), {x});
  return tamed(make(Op::linear, {x, table}));
}

int Generator::matmul(Op) {
  int left = floats(2, 5);
  if (left < 0)
    return -1;
  Extents other = shapeOf(left);
  const Dim inner = other.back(), columns = extent();
  // The other operand's batch dimensions: the same, some of them, with ones, or with more.
  other.resize(other.size() - 2);
  while (!other.empty() && random.percent(25))
    other.erase(other.begin());
  for (Dim &dim : other)
    if (random.percent(20))
      dim = 1;
    else if (dim == Dim(1) && random.percent(40))
      dim = extent();
  if (other.size() < 3 && random.percent(10))
    other.insert(other.begin(), extent());
  const bool isTransposed = random.percent(40);
  other.push_back(isTransposed ? columns : inner);
  other.push_back(isTransposed ? inner : columns);
  if (mostElements(other) > options.maxElements)
    return -1;
  int right = isTransposed && random.percent(15) ? left : ofType(floatType(other));
  if (right < 0)
    return -1;
  if (isTransposed)
    right = transposed(right, lastTwoSwapped(shapeOf(right).size()));
  int product = make(Op::matmul, {left, right});
  if (product >= 0 && random.percent(15))
    product = transposed(product, lastTwoSwapped(shapeOf(product).size()));
  return tamed(product);
}

int Generator::attentionOf(Op op, int queries, int keys, int values, int heads, int keyHeads) {
  if (queries < 0 || keys < 0 || values < 0)
    return -1;
  const Extents q = shapeOf(queries), k = shapeOf(keys);
  const Extents batch(q.begin(), q.end() - 2);
  const Dim rows = q[batch.size()], columns = k[batch.size()];
  Attributes attributes;
  attributes.heads = heads;
  attributes.key_value_heads = keyHeads;
  const double headDim = static_cast<double>(q.back().min()) / heads;
  attributes.scale = random.percent(70) ? 1 / square_root(headDim) : random.of({1.0, 0.125, 0.5, 2.0});
  attributes.causal = atLeast(columns, rows) && random.percent(35);
  if (attributes.causal && random.percent(35))
    attributes.window_keys = random.of({1, 2, 3, 7, 16, 33});
  if (random.percent(20))
    attributes.softcap = random.of({0.5, 4.0, 30.0});
  std::vector<int> operands{queries, keys};
  if (op == Op::attention)
    operands.push_back(values);
  if (random.percent(35)) {
    Extents mask = batch;
    if (random.percent(35) && mask.size() + 3 <= largest_rank)
      mask.push_back(heads);
    mask.push_back(rows);
    mask.push_back(columns);
    const bool isByHead = mask.size() > q.size();
    while (!isByHead && !mask.empty() && random.percent(30))
      mask.erase(mask.begin());
    for (Dim &dim : mask)
      if (random.percent(20))
        dim = 1;
    int given = random.percent(30) ? maskByPosition(queries, keys, heads) : -1;
    if (given < 0 && random.percent(60))
      given = ofType(floatType(mask));
    if (given < 0) {
      // If a row masked all keys, a mask as large as 1e9 would absorb the scores in f32; so with such a mask the first
      // key is never masked.
      const bool seesFirst = random.percent(40) && !isByHead;
      int seen = -1;
      if (seesFirst) {
        const int place = make(Op::positions, {keys}, alongAxis(static_cast<int>(batch.size())));
        seen = make(Op::less, {place, number(static_cast<double>(random.between(1, 5)), ElementType::i32)});
      } else
        seen = condition(mask);
      const double size = seesFirst ? -1e9 : random.of({-100.0, -20.0, -8.0});
      const int none = number(0, options.element), much = number(size, options.element);
      given = make(Op::where, {seen, none, much});
    }
    operands.push_back(given);
    attributes.has_mask = true;
  }
  if (op == Op::attention && random.percent(20))
    if (const int sinks = tamed(ofType(floatType({heads})), 8); sinks >= 0) {
      operands.push_back(sinks);
      attributes.has_sinks = true;
    }
  if (random.percent(30)) {
    operands.push_back(lengths(batch, columns));
    attributes.has_lengths = true;
  }
  return make(op, operands, attributes);
}

int Generator::attention(Op op) {
  const int keyHeads = static_cast<int>(random.of({1, 1, 1, 2, 2, 3, 4})),
            heads = keyHeads * static_cast<int>(random.of({1, 1, 1, 2, 3}));
  const int headDim = static_cast<int>(random.of({1, 2, 3, 4, 5, 8, 16, 17, 32, 64}));
  const int valueHeadDim = random.percent(70) ? headDim : static_cast<int>(random.of({1, 3, 4, 8, 15}));
  int queries = choose([&](int id) {
    return isFloat(b.node(id).element) && shapeOf(id).size() >= 2 && shapeOf(id).back() == Dim(heads * headDim);
  });
  if (queries < 0) {
    Extents extents = shape(0, 2);
    extents.push_back(extent());
    extents.push_back(heads * headDim);
    queries = ofType(floatType(extents));
  }
  if (queries < 0)
    return -1;
  Extents extents = shapeOf(queries);
  const std::size_t rank = extents.size();
  if (random.percent(50))
    extents[rank - 2] = extent();
  extents[rank - 1] = keyHeads * headDim;
  const int keys = ofType(floatType(extents));
  extents[rank - 1] = keyHeads * valueHeadDim;
  const int values = op == Op::attention_scores ? keys : ofType(floatType(extents));
  if (queries < 0 || keys < 0 || values < 0)
    return -1;
  queries = tamed(queries, 8);
  const int small = tamed(keys, 8);
  int result = attentionOf(op, queries, small, values, heads, keyHeads);
  if (op == Op::attention_scores && result >= 0)
    result = random.percent(80) ? make(Op::softmax, {result}, alongAxis(static_cast<int>(rank))) : result;
  return result;
}

/// Reshapes [..., T, H * D] to [..., H, T, D] or [..., H, D, T]; returns -1 for -1.
int Generator::splitIntoHeads(int x, int heads, bool isTransposed) {
  if (x < 0)
    return x;
  Extents parts = shapeOf(x);
  const int batch = static_cast<int>(parts.size()) - 2;
  const std::int64_t width = parts.back().offset;
  parts.back() = heads;
  parts.push_back(width / heads);
  std::vector<int> permutation = identity(batch);
  for (int axis : isTransposed ? std::vector{1, 2, 0} : std::vector{1, 0, 2})
    permutation.push_back(batch + axis);
  return transposed(reshapedTo(x, parts), permutation);
}

/// Computes scale q k^T + mask, with the scale at one of three positions or omitted. Split keys are transposed already.
int Generator::writtenOutScores(int queries, int keys, bool isSplit) {
  const double scale = random.of({0.5, 0.25, 0.125});
  const std::int64_t place = random.below(4);
  if (place == 0)
    queries = scaled(queries, scale);
  if (!isSplit)
    keys = transposed(keys, lastTwoSwapped(shapeOf(keys).size()));
  if (place == 1)
    keys = scaled(keys, scale);
  int scores = make(Op::matmul, {queries, keys});
  if (place == 2)
    scores = scaled(scores, scale);
  if (scores < 0 || !random.percent(40))
    return scores;
  const int mask = besides(b.type(scores), false);
  if (mask < 0)
    return -1;
  const bool isFirst = random.percent(50);
  return make(Op::add, {isFirst ? mask : scores, isFirst ? scores : mask});
}

/// Computes softmax(scale q k^T + mask) v from matrix products and transposes, in forms that the compiler may or may
/// not recognise.
int Generator::writtenOutAttention(Op) {
  const int heads = static_cast<int>(random.of({1, 1, 2, 3, 4})),
            headDim = static_cast<int>(random.of({2, 3, 4, 8, 16}));
  const bool isSplit = random.percent(70);
  Extents extents = shape(0, 1);
  const std::size_t batch = extents.size();
  extents.push_back(extent());
  extents.push_back(heads * headDim);
  if (mostElements(extents) > options.maxElements / 4)
    return -1;
  const int q = ofType(floatType(extents));
  if (random.percent(40))
    extents[batch] = extent();
  const int k = ofType(floatType(extents)), v = random.percent(20) ? k : ofType(floatType(extents));
  if (q < 0 || k < 0 || v < 0)
    return -1;
  auto split = [&](int x, bool isTransposed) { return isSplit ? splitIntoHeads(x, heads, isTransposed) : x; };
  const int queries = split(tamed(q, 6), false), keys = split(tamed(k, 6), true), values = split(v, false);
  if (queries < 0 || keys < 0 || values < 0)
    return -1;
  const int scores = writtenOutScores(queries, keys, isSplit);
  if (scores < 0)
    return -1;
  const int weights = make(Op::softmax, {scores}, alongAxis(static_cast<int>(batch) + 1 + isSplit));
  int result = make(Op::matmul, {weights, values});
  if (!isSplit || result < 0 || random.percent(15))
    return result;
  std::vector<int> permutation = identity(static_cast<int>(batch));
  for (int axis : {1, 0, 2})
    permutation.push_back(static_cast<int>(batch) + axis);
  result = transposed(result, permutation);
  return random.percent(85) ? reshapedTo(result, Extents(shapeOf(q))) : result;
}

/// Attention whose queries, keys and values are projections of one value.
int Generator::selfAttention(Op) {
  const int heads = static_cast<int>(random.of({1, 2, 3, 4})), headDim = static_cast<int>(random.of({2, 3, 4, 8, 16}));
  int x = choose([&](int id) {
    return isFloat(b.node(id).element) && shapeOf(id).size() >= 2 && shapeOf(id).size() <= 4 &&
           shapeOf(id).back().fixed();
  });
  if (x < 0) {
    Extents extents = shape(0, 2);
    extents.push_back(extent());
    extents.push_back(fixedExtent());
    x = fresh(floatType(extents));
  }
  if (x < 0)
    return -1;
  const int keyHeads = heads % 2 == 0 && random.percent(25) ? heads / 2 : heads;
  Attributes attributes;
  attributes.weight_order = random.percent(30) ? WeightOrder::in_out : WeightOrder::out_in;
  const bool hasBias = random.percent(60);
  auto projected = [&](int width) { return dense(x, width, attributes, hasBias); };
  const int q = projected(heads * headDim);
  const int k = projected(keyHeads * headDim);
  const int v = projected(keyHeads * headDim);
  const int seen = attentionOf(Op::attention, q, k, v, heads, keyHeads);
  if (seen < 0 || random.percent(40))
    return seen;
  const int weight = parameter(floatType({shapeOf(x).back(), heads * headDim}));
  return tamed(make(Op::linear, {seen, weight}));
}

} // namespace kiln::fuzz
