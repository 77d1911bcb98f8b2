// SPDX-License-Identifier: Apache-2.0
//
// Result types of contractions, image operations and data movement.
#include <algorithm>

#include "tests/fuzz/ShapesParts.h"

namespace kiln::fuzz {
namespace {

Extents leading(const Extents &shape, std::size_t without) {
  return {shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(std::min(without, shape.size()))};
}

std::optional<Type> inferAttention(const Node &node, const std::vector<Type> &x, Rules &rules) {
  const Attributes &a = node.attributes;
  const bool hasValues = node.op == Op::attention;
  const std::size_t tensors = hasValues ? 3 : 2;
  for (std::size_t i = 0; i < tensors; ++i) {
    if (!rules.require(x[i].rank() >= 2, "attention_c6"))
      return {};
    if (!rules.require(leading(x[i].shape, 2) == leading(x[0].shape, 2), "attention_c5"))
      return {};
    rules.require(isFloat(x[0].element) && x[i].element == x[0].element, "attention_c12");
  }
  const Extents batch = leading(x[0].shape, 2);
  const Dim queries = x[0].shape[batch.size()], keys = x[1].shape[batch.size()], width = x[0].shape.back();
  const int heads = a.heads, keyHeads = a.key_value_heads;
  if (!rules.require(heads >= 1 && keyHeads >= 1, "attention_c15") ||
      !rules.require(heads % keyHeads == 0, "attention_c16") ||
      !rules.require(width.fixed() && width.offset % heads == 0, "attention_c1"))
    return {};
  rules.require(x[1].shape.back() == Dim(width.offset / heads * keyHeads), "attention_c2");
  rules.require(!a.causal || atLeast(keys, queries), "attention_c10");
  rules.require(a.scale > 0, "attention_c11");
  rules.require(a.window_keys == 0 || (a.causal && a.window_keys > 0), "attention_c17");
  rules.require(a.softcap >= 0, "attention_c18");
  if (a.has_mask) {
    const Type &mask = x[tensors];
    Extents scores = batch;
    if (mask.rank() == x[0].rank() + 1)
      scores.push_back(heads);
    scores.push_back(queries);
    scores.push_back(keys);
    rules.require(broadcasts(mask.shape, scores) && broadcast(mask.shape, scores) == scores, "attention_c7");
    rules.require(mask.element == x[0].element, "attention_c8");
  }
  if (a.has_sinks)
    rules.require(x[tensors + a.has_mask] == Type{x[0].element, {heads}}, "attention_c19");
  if (a.has_lengths)
    rules.require(x.back() == Type{ElementType::i32, batch}, "attention_c9");
  Type result{x[0].element, batch};
  if (!hasValues) {
    result.shape.push_back(heads);
    result.shape.push_back(queries);
    result.shape.push_back(keys);
    return result;
  }
  const Dim values = x[2].shape.back();
  rules.require(x[2].shape[batch.size()] == keys, "attention_c4");
  if (!rules.require(values.fixed() && values.offset % keyHeads == 0, "attention_c3"))
    return {};
  result.shape.push_back(queries);
  result.shape.push_back(values.offset / keyHeads * heads);
  return result;
}

std::optional<Type> inferGroupedLinear(const Node &node, const std::vector<Type> &x, Rules &rules) {
  const Extents &weight = x[1].shape, &ends = x[2].shape;
  if (!rules.require(x[0].rank() == 2, "grouped_linear_c1") ||
      !rules.require(weight.size() == 2 && isFixed(weight), "grouped_linear_c2") ||
      !rules.require(ends.size() == 1 && isFixed(ends) && x[2].element == ElementType::i32, "grouped_linear_c3") ||
      !rules.require(weight[0].offset % ends[0].offset == 0, "grouped_linear_c4"))
    return {};
  const bool outFirst = node.attributes.weight_order == WeightOrder::out_in;
  const Dim each = weight[0].offset / ends[0].offset, out = outFirst ? each : weight[1];
  rules.require(x[0].shape[1] == (outFirst ? weight[1] : each), "grouped_linear_c5");
  rules.require(isFloat(x[0].element) && x[1].element == x[0].element, "grouped_linear_c7");
  if (x.size() == 4) {
    rules.require(x[3].shape == Extents{ends[0].offset * out.offset}, "grouped_linear_c6");
    rules.require(x[3].element == x[0].element, "grouped_linear_c7");
  }
  Type result = x[0];
  result.shape[1] = out;
  return result;
}

} // namespace

std::optional<Type> inferContraction(const Node &node, const std::vector<Type> &x, Rules &rules) {
  if (node.op == Op::attention || node.op == Op::attention_scores)
    return inferAttention(node, x, rules);
  Type result = x[0];
  if (node.op == Op::linear) {
    if (!rules.require(x[0].rank() >= 1, "linear_c2") || !rules.require(x[1].rank() == 2, "linear_c3"))
      return {};
    const bool outFirst = node.attributes.weight_order == WeightOrder::out_in;
    rules.require(x[0].shape.back() == x[1].shape[outFirst ? 1 : 0], "linear_c1");
    result.shape.back() = x[1].shape[outFirst ? 0 : 1];
    rules.require(isFloat(x[0].element) && x[1].element == x[0].element, "linear_c5");
    if (x.size() == 3) {
      rules.require(x[2].shape == Extents{result.shape.back()}, "linear_c4");
      rules.require(x[2].element == x[0].element, "linear_c5");
    }
    return result;
  }
  if (node.op == Op::grouped_linear)
    return inferGroupedLinear(node, x, rules);
  if (!rules.require(x[0].rank() >= 2 && x[1].rank() >= 2, "matmul_c2"))
    return {};
  rules.require(x[0].shape.back() == x[1].shape[x[1].shape.size() - 2], "matmul_c1");
  rules.require(isFloat(x[0].element) && x[1].element == x[0].element, "matmul_c4");
  const Extents a = leading(x[0].shape, 2), b = leading(x[1].shape, 2);
  if (!rules.require(broadcasts(a, b), "matmul_c3"))
    return {};
  result.shape = broadcast(a, b);
  result.shape.push_back(x[0].shape[a.size()]);
  result.shape.push_back(x[1].shape.back());
  return result;
}

std::optional<Type> inferImage(const Node &node, const std::vector<Type> &x, Rules &rules) {
  Type result = x[0];
  const std::size_t rank = x[0].shape.size();
  rules.require(isFloat(x[0].element), "an image of numbers");
  if (node.op == Op::resize_bilinear) {
    if (!rules.require(rank >= 3, "resize_bilinear_c1") ||
        !rules.require(node.shape.size() == rank && node.shape[rank - 3].fixed() && node.shape[rank - 2].fixed() &&
                           x[0].shape[rank - 3].fixed() && x[0].shape[rank - 2].fixed(),
                       "resize_bilinear_c2"))
      return {};
    result.shape[rank - 3] = node.shape[rank - 3];
    result.shape[rank - 2] = node.shape[rank - 2];
    return result;
  }
  const Window &w = node.attributes.window;
  const bool isConvolution = node.op == Op::conv2d;
  if (!rules.require(rank >= 3, isConvolution ? "conv2d_c1" : "pool2d_c1"))
    return {};
  if (isConvolution) {
    const int groups = node.attributes.groups;
    if (!rules.require(x[1].rank() == 4 && isFixed(x[1].shape), "conv2d_c2") ||
        !rules.require(groups >= 1 && x[1].shape[0].offset % groups == 0, "conv2d_c4"))
      return {};
    rules.require(x[0].shape.back() == x[1].shape[1] * Dim(groups), "conv2d_c3");
    rules.require(Dim(w.kernel.height) == x[1].shape[2] && Dim(w.kernel.width) == x[1].shape[3], "the weight's kernel");
    rules.require(x[1].element == x[0].element && x.back().element == x[0].element, "conv2d_c6");
    if (x.size() == 3)
      rules.require(x[2].shape == Extents{x[1].shape[0]}, "conv2d_c5");
    result.shape.back() = x[1].shape[0];
  } else {
    rules.require(2 * w.padding.height <= w.kernel.height && 2 * w.padding.width <= w.kernel.width, "pool2d_c3");
    rules.require(w.dilation == Pair(1), "a pool without dilation");
  }
  const auto rows = windowCount(x[0].shape[rank - 3], w.kernel.height, w.stride.height, w.padding.height,
                                w.dilation.height),
             columns =
                 windowCount(x[0].shape[rank - 2], w.kernel.width, w.stride.width, w.padding.width, w.dilation.width);
  if (!rules.require(rows && columns, "window_c1, window_c2 or window_c3"))
    return {};
  result.shape[rank - 3] = *rows;
  result.shape[rank - 2] = *columns;
  return result;
}

static std::optional<Type> inferTranspose(const Node &node, const Type &x, Rules &rules) {
  const std::vector<int> &permutation = node.attributes.permutation;
  std::vector<int> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool isPermutation = sorted.size() == x.shape.size();
  for (std::size_t i = 0; isPermutation && i < sorted.size(); ++i)
    isPermutation = sorted[i] == static_cast<int>(i);
  if (!rules.require(isPermutation, "transpose_c1"))
    return {};
  Type result = x;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    result.shape[i] = x.shape[permutation[i]];
  return result;
}

static bool isAxisOf(const Type &x, int axis) { return axis >= 0 && axis < x.rank(); }

static std::optional<Type> inferConcat(const Node &node, const std::vector<Type> &x, Rules &rules) {
  if (!rules.require(isAxisOf(x[0], node.attributes.axis), "concat_c3"))
    return {};
  const auto axis = static_cast<std::size_t>(node.attributes.axis);
  Type result = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (!rules.require(x[i].element == x[0].element && x[i].rank() == x[0].rank(), "concat_c1") ||
        !rules.require(Dim::addable(result.shape[axis], x[i].shape[axis]), "concat_c4"))
      return {};
    Extents expected = x[i].shape;
    expected[axis] = result.shape[axis];
    rules.require(expected == result.shape, "concat_c2");
    result.shape[axis] = result.shape[axis] + x[i].shape[axis];
  }
  return result;
}

static std::optional<Type> inferSlice(const Node &node, const Type &x, Rules &rules) {
  const Attributes &a = node.attributes;
  if (!rules.require(isAxisOf(x, a.axis) && node.shape.size() == x.shape.size(), a.at_end ? "last_c1" : "slice_c1"))
    return {};
  const auto axis = static_cast<std::size_t>(a.axis);
  const Dim &whole = x.shape[axis], &part = node.shape[axis];
  if (a.at_end) {
    rules.require(atLeast(whole, part), "last_c2");
    rules.require(a.start == 0, "no start at the end");
  } else {
    Dim end = part;
    end.offset += a.start;
    // declared_at_least does not suffice for a slice.
    rules.require(a.start >= 0 && (Dim::addable(whole, end) ? (whole - end).min() >= 0 : end.max() <= whole.min()),
                  "slice_c2");
  }
  Type result = x;
  result.shape[axis] = part;
  return result;
}

static std::optional<Type> inferGather(const Node &node, const std::vector<Type> &x, Rules &rules) {
  const int axis = node.attributes.axis;
  rules.require(x[1].element == ElementType::i32, "gather_c1");
  if (!rules.require(isAxisOf(x[0], axis), "gather_c2"))
    return {};
  Type result = x[0];
  result.shape.erase(result.shape.begin() + axis);
  result.shape.insert(result.shape.begin() + axis, x[1].shape.begin(), x[1].shape.end());
  return result;
}

std::optional<Type> inferMovement(const Node &node, const std::vector<Type> &x, Rules &rules) {
  switch (node.op) {
  case Op::reshape:
    rules.require(sameCount(x[0].shape, node.shape), "reshape_c1");
    return Type{x[0].element, node.shape};
  case Op::expand:
    rules.require(broadcasts(x[0].shape, node.shape) && broadcast(x[0].shape, node.shape) == node.shape, "expand_c1");
    return Type{x[0].element, node.shape};
  case Op::transpose:
    return inferTranspose(node, x[0], rules);
  case Op::concat:
    return inferConcat(node, x, rules);
  case Op::slice:
    return inferSlice(node, x[0], rules);
  default:
    return inferGather(node, x, rules);
  }
}

static std::optional<Type> inferByFamily(const Node &node, const std::vector<Type> &x, Rules &rules) {
  switch (family_of(node.op)) {
  case Family::source:
    return inferSource(node, x, rules);
  case Family::lookup:
    return node.op == Op::gather ? inferMovement(node, x, rules) : inferSource(node, x, rules);
  case Family::contraction:
  case Family::attention:
    return inferContraction(node, x, rules);
  case Family::unary:
  case Family::binary:
  case Family::comparison:
  case Family::logic:
  case Family::selection:
  case Family::conversion:
    return inferElementwise(node, x, rules);
  case Family::norm:
  case Family::reduction:
    return inferRows(node, x, rules);
  case Family::convolution:
  case Family::image:
    return inferImage(node, x, rules);
  case Family::movement:
    if (node.op != Op::dropout && node.op != Op::stop_gradient && node.op != Op::running_average)
      return inferMovement(node, x, rules);
    rules.require(isFloat(x[0].element), "unary_c1");
    return x[0];
  case Family::state:
    if (node.op == Op::append) {
      const bool fits = !node.shape.empty() && !x[0].shape.empty() && x[0].element == node.element &&
                        x[0].shape.size() == node.shape.size() &&
                        std::equal(x[0].shape.begin() + 1, x[0].shape.end(), node.shape.begin() + 1);
      if (rules.require(fits, "append_c1"))
        rules.require(atLeast(node.shape[0], x[0].shape[0]), "append_c2");
    }
    return typeOf(node);
  case Family::custom:
  case Family::loop:
    return typeOf(node);
  }
  return {};
}

std::optional<Type> inferType(const Node &node, const std::vector<Type> &x, std::string &why) {
  Rules rules;
  std::optional<Type> result;
  std::size_t fewest = info(node.op).fewest, most = info(node.op).most;
  if (info(node.op).has(Fields::heads))
    fewest = most = fewest + node.attributes.has_mask + node.attributes.has_sinks + node.attributes.has_lengths;
  if (rules.require(x.size() >= fewest && x.size() <= most, "as many operands as the operation has"))
    result = inferByFamily(node, x, rules);
  if (rules.broken.empty() && result && result->shape.size() > largest_rank)
    rules.require(false, "tensor_c3");
  why = rules.broken;
  return rules.broken.empty() ? result : std::nullopt;
}

} // namespace kiln::fuzz
