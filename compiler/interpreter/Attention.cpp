// SPDX-License-Identifier: Apache-2.0
//
// attention: for each head s = cap(scale q k^T) + mask, with cap(x) = c tanh(x / c) if there is a softcap c, -infinity
// for excluded keys, y = softmax(s) v. Attention weights of f16 and bf16 may be rounded before they are multiplied.
// attention_scores: s, with -3e38 for excluded keys; for f16 and bf16 clamped to finite numbers.
//
// A mask of at most -1e38, like -infinity, masks a key out: its weight is 0, and its score may be anything from -3e38
// to -1e38. A row all of whose keys are excluded or masked out is 0.
#include <algorithm>
#include <cmath>

#include "compiler/interpreter/OpCall.h"
#include "compiler/interpreter/SoftmaxRow.h"

namespace kiln::interpreter {
namespace {

constexpr double excludedScore = -3e38, maskedScore = -2e38, lowestMask = -1e38;

/// Checked operands and dimensions of both ops.
class Heads {
public:
  explicit Heads(const OpCall &call);

  /// Whether the query attends to the key; `isKnown` becomes false where a length is undetermined.
  bool counts(std::int64_t b, std::int64_t i, std::int64_t j, bool &isKnown) const;
  /// Returns cap(scale q_i k_j) + mask, for included keys.
  Value score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;

  /// The further score of each head; nullptr: there are none.
  const Tensor *sinks = nullptr;

  std::int64_t keyHead(std::int64_t h) const { return h / (heads / keyHeads); }

  const OpCall &call;
  Arithmetic arithmetic;
  std::int64_t batch = 1, queries = 0, keys = 0, heads = 0, keyHeads = 0, headDim = 0;
  TensorShape leading; // the axes before rows

private:
  void checkOptions();
  Value capped(Value score) const;
  Value maskAt(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;

  const Tensor *mask = nullptr, *lengths = nullptr;
  bool isMaskByHead = false;
};

Heads::Heads(const OpCall &call) : call(call), arithmetic(call.count() ? call[0].element : ElementType::f32) {
  const Attributes &attributes = call.attributes();
  const std::size_t tensors = call.node.op == Op::attention ? 3 : 2;
  const std::size_t all = tensors + attributes.has_mask + attributes.has_sinks + attributes.has_lengths;
  call.requireOperands(all, all);
  call.requireFloating();
  for (std::size_t i = 0; i < tensors; ++i) {
    call.requireRank(i, 2);
    call.require(call[i].element == call[0].element, "element types differ; expected one");
    const TensorShape axes(call[i].shape.begin(), call[i].shape.end() - 2);
    if (i == 0)
      leading = axes;
    call.require(axes == leading, "leading dimensions differ; expected the same");
  }
  if (attributes.has_mask)
    mask = call.operands[tensors];
  if (attributes.has_sinks)
    sinks = call.operands[tensors + attributes.has_mask];
  if (attributes.has_lengths)
    lengths = call.operands[all - 1];
  const TensorShape &q = call[0].shape, &k = call[1].shape;
  batch = elementCount(leading);
  queries = q[q.size() - 2];
  keys = k[k.size() - 2];
  heads = attributes.heads;
  keyHeads = attributes.key_value_heads;
  call.require(heads >= 1 && keyHeads >= 1 && heads % keyHeads == 0,
               "heads are not divisible; expected a multiple of those of the keys");
  call.require(q.back() % heads == 0, "query width is not divisible by the heads; expected a multiple");
  headDim = q.back() / heads;
  call.require(k.back() == headDim * keyHeads, "widths of the heads differ; expected keys as wide as queries");
  checkOptions();
}

void Heads::checkOptions() {
  call.require(call.attributes().scale > 0, "wrong scale; expected one above 0");
  call.require(call.attributes().window_keys == 0 || (call.attributes().causal && call.attributes().window_keys > 0),
               "wrong window; expected at least one key, of causal attention");
  call.require(call.attributes().softcap >= 0, "wrong limit of the scores; expected one above 0");
  call.require(!call.attributes().causal || keys >= queries,
               "too few keys for causal attention; expected as many as queries or more");
  if (mask) {
    isMaskByHead = mask->rank() == call[0].rank() + 1;
    TensorShape scores = leading, both;
    if (isMaskByHead)
      scores.push_back(heads);
    scores.push_back(queries);
    scores.push_back(keys);
    call.require(mask->element == call[0].element && mask->shape.size() <= scores.size() &&
                     broadcast(mask->shape, scores, both) && both == scores,
                 "wrong mask; expected one of its type that broadcasts to the scores");
  }
  if (sinks)
    call.require(call.node.op == Op::attention && sinks->element == call[0].element &&
                     sinks->shape == TensorShape{heads},
                 "wrong sinks; expected one of the queries' type for each head");
  if (lengths)
    call.require(lengths->element == ElementType::i32 && lengths->shape == leading,
                 "wrong lengths; expected one of i32 for each sequence");
}

bool Heads::counts(std::int64_t b, std::int64_t i, std::int64_t j, bool &isKnown) const {
  const Attributes &attributes = call.attributes();
  const std::int64_t last = i + keys - queries;
  if (attributes.causal && (j > last || (attributes.window_keys > 0 && j <= last - attributes.window_keys)))
    return false;
  if (!lengths)
    return true;
  isKnown &= lengths->at(b).isDetermined();
  return static_cast<double>(j) < lengths->values[b];
}

Value Heads::maskAt(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  TensorShape scores = leading;
  if (isMaskByHead)
    scores.push_back(heads);
  scores.push_back(queries);
  scores.push_back(keys);
  const std::int64_t row = isMaskByHead ? b * heads + h : b;
  return mask->at(broadcastOffset(mask->shape, scores, (row * queries + i) * keys + j));
}

/// The units of the scores, or the reciprocal of the limit, cost more roundings.
Value Heads::capped(Value score) const {
  const double cap = call.attributes().softcap;
  if (cap == 0 || !score.isDetermined() || std::isnan(score.value))
    return score;
  Value inner = arithmetic.mul(score, exact(1 / cap));
  inner.error += 2 * arithmetic.unit * std::abs(inner.value);
  Value result = arithmetic.mul(evaluateUnary(Op::tanh, inner, arithmetic), exact(cap));
  result.error += 2 * arithmetic.unit * std::abs(result.value);
  return result;
}

Value Heads::score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  const Tensor &q = call[0], &k = call[1];
  Sum product(arithmetic);
  for (std::int64_t d = 0; d < headDim; ++d)
    product.addProduct(q.at((b * queries + i) * heads * headDim + h * headDim + d),
                       k.at((b * keys + j) * keyHeads * headDim + keyHead(h) * headDim + d));
  // The scale may be applied to the query, and scores may be computed in log2 units.
  const double scale = call.attributes().scale;
  Value score = capped(arithmetic.mul(product.result(4), exact(scale)));
  if (!score.isDetermined() || !mask)
    return score;
  const Value added = maskAt(b, h, i, j);
  if (std::isnan(score.value) || std::isnan(added.value))
    return arithmetic.add(score, added);
  if (added.isDetermined() && added.value + added.error <= lowestMask)
    return {maskedScore, 1.005e38};
  const Value masked = arithmetic.add(score, added);
  return masked.isDetermined() && std::isfinite(masked.value)
             ? arithmetic.settle(masked.value, masked.error + 4 * arithmetic.unit * std::abs(added.value))
             : masked;
}

Tensor evaluateScores(const Heads &heads) {
  const OpCall &call = heads.call;
  TensorShape shape = heads.leading;
  shape.insert(shape.end(), {heads.heads, heads.queries, heads.keys});
  const ElementType element = call[0].element;
  Tensor result = call.result(shape, element);
  const double excluded = roundTo(ElementType::f32, excludedScore);
  const double most = half_float(element) ? largestOf(element) : std::numeric_limits<double>::infinity();
  std::int64_t flat = 0;
  for (std::int64_t b = 0; b < heads.batch; ++b)
    for (std::int64_t h = 0; h < heads.heads; ++h)
      for (std::int64_t i = 0; i < heads.queries; ++i)
        for (std::int64_t j = 0; j < heads.keys; ++j, ++flat) {
          bool isKnown = true;
          const bool counts = heads.counts(b, i, j, isKnown);
          const Arithmetic &arithmetic = heads.arithmetic;
          const Value within = arithmetic.minimum(counts ? heads.score(b, h, i, j) : exact(excluded), exact(most));
          const Value score = arithmetic.maximum(within, exact(-most));
          result.set(flat, isKnown ? score : undetermined(score.value));
        }
  return result;
}

/// One head's row of the result: the sum of the values weighted by the softmax.
class HeadRow {
public:
  HeadRow(const Heads &heads, std::int64_t b, std::int64_t h, std::int64_t i)
      : heads(heads), batch(b), keyHead(heads.keyHead(h)), weights(heads.arithmetic, scores(b, h, i)) {}

  Value element(std::int64_t e, std::int64_t headDim) const {
    const Tensor &v = heads.call[2];
    const Arithmetic &arithmetic = heads.arithmetic;
    if (isEmpty && isKnown)
      return exact(0);
    if (weights.isNan() && isKnown)
      return weights.weight(0);
    Sum sum(arithmetic);
    bool isOpen = !isKnown || !weights.isDetermined(), hasNan = false;
    for (std::int64_t j = 0; j < heads.keys; ++j) {
      const Value value = v.at(((batch * heads.keys + j) * heads.keyHeads + keyHead) * headDim + e);
      const Value inF32 = weights.weight(j), weight = half_float(v.element) ? rounded(v.element, inF32) : inF32;
      sum.addProduct(weight, value);
      if (value.isDetermined() && std::isfinite(value.value))
        continue;
      // 0 times the value is NaN, unless keys of weight 0 are skipped.
      const bool counts = weight.value - weight.error > 1e-30;
      isOpen |= !value.isDetermined() || !counts || !std::isnan(value.value);
      hasNan = true;
    }
    const Value result = hasNan ? exact(std::numeric_limits<double>::quiet_NaN()) : sum.result(2);
    return isOpen ? undetermined(result.value) : result;
  }

private:
  std::vector<Value> scores(std::int64_t b, std::int64_t h, std::int64_t i) {
    std::vector<Value> row;
    for (std::int64_t j = 0; j < heads.keys; ++j) {
      const bool counts = heads.counts(b, i, j, isKnown);
      Value score = counts ? heads.score(b, h, i, j) : exact(-std::numeric_limits<double>::infinity());
      isEmpty &= !counts || score.value == maskedScore;
      if (score.isDetermined() && score.value <= SoftmaxRow::lowest)
        score = exact(-std::numeric_limits<double>::infinity());
      row.push_back(score);
    }
    if (heads.sinks)
      row.push_back(heads.sinks->at(h)); // its value is 0, so it only takes part in the sum of the weights
    return row;
  }

  const Heads &heads;
  std::int64_t batch, keyHead;
  bool isKnown = true, isEmpty = true;
  SoftmaxRow weights;
};

Tensor evaluateWeighted(const Heads &heads) {
  const OpCall &call = heads.call;
  const Tensor &v = call[2];
  call.require(v.shape[v.rank() - 2] == heads.keys, "number of values differs; expected as many as keys");
  call.require(v.shape.back() % heads.keyHeads == 0, "value width is not divisible by the heads; expected a multiple");
  const std::int64_t headDim = v.shape.back() / heads.keyHeads;
  TensorShape shape = call[0].shape;
  shape.back() = headDim * heads.heads;
  Tensor result = call.result(shape, call[0].element);
  for (std::int64_t b = 0; b < heads.batch; ++b)
    for (std::int64_t i = 0; i < heads.queries; ++i)
      for (std::int64_t h = 0; h < heads.heads; ++h) {
        const HeadRow row(heads, b, h, i);
        for (std::int64_t e = 0; e < headDim; ++e)
          result.set(((b * heads.queries + i) * heads.heads + h) * headDim + e, row.element(e, headDim));
      }
  return result;
}

} // namespace

Tensor evaluateAttention(const OpCall &call) {
  const Heads heads(call);
  return call.node.op == Op::attention ? evaluateWeighted(heads) : evaluateScores(heads);
}

} // namespace kiln::interpreter
