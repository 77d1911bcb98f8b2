// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/Facts.h"

#include <algorithm>

#include "kiln/contraction.h"

namespace kiln::fuzz {

static double larger(const Facts &x) { return std::max(x.low < 0 ? -x.low : x.low, x.high < 0 ? -x.high : x.high); }

Facts between(double low, double high) {
  Facts result{low, high, 0, {}};
  result.size = larger(result);
  return result;
}

Facts indicesBelow(const Dim &extent) {
  Facts result = between(0, static_cast<double>(extent.max() - 1));
  result.below = extent;
  return result;
}

Facts hull(const Facts &a, const Facts &b) {
  Facts result{std::min(a.low, b.low), std::max(a.high, b.high), std::max(a.size, b.size), {}};
  for (const auto &[one, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (one->below &&
        (other->below ? *one->below == *other->below : other->high < static_cast<double>(one->below->min())))
      result.below = one->below;
  return result;
}

static Facts product(const Facts &a, const Facts &b) {
  const double corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4), a.size * b.size, {}};
}

/// Returns the facts of a sum of `count` terms.
static Facts sumOf(const Facts &term, double count) {
  const double typical = term.size * (1 + square_root(count)), most = larger(term) * count;
  const bool hasSign = term.low >= 0 || term.high <= 0;
  return {std::min(term.low * count, term.low),
          std::max(term.high * count, term.high),
          hasSign ? most : std::min(typical, most),
          {}};
}

static double elementsOf(const Dim &dim) { return static_cast<double>(dim.max()); }

/// Clamps bounds that are too large to track.
static Facts limited(Facts facts) {
  constexpr double most = 1e30;
  facts.low = std::clamp(facts.low, -most, most);
  facts.high = std::clamp(facts.high, -most, most);
  facts.size = std::min(facts.size, most);
  return facts;
}

/// Computes e^x by squaring, since the result of libm may differ between machines.
static double powerOfE(double x) {
  x = std::clamp(x, -60.0, 60.0);
  double result = 1 + x / 1024;
  for (int i = 0; i < 10; ++i)
    result *= result;
  return x < 0 ? result / 2 : result * 4;
}

static Facts unary(Op op, const Facts &x) {
  switch (op) {
  case Op::exp:
    return {0, powerOfE(x.high), powerOfE(x.high), {}};
  case Op::log:
    return x.low > 0 ? between(-1 / x.low, std::max(x.high - 1, 0.0)) : Facts{-1e30, std::max(x.high, 1.0), 5, {}};
  case Op::sqrt:
    return {0, 1 + std::max(x.high, 0.0), 1 + square_root(std::max(x.size, 1.0)), {}};
  case Op::expm1:
    return {-1, powerOfE(x.high), std::max(powerOfE(x.high), 1.0), {}};
  case Op::log1p:
    return x.low > -0.9 ? between(std::min(x.low * 10, 0.0), std::max(x.high, 0.0))
                        : Facts{-1e30, std::max(x.high, 1.0), 5, {}};
  case Op::tanh:
  case Op::sin:
  case Op::cos:
  case Op::erf:
    return between(-1, 1);
  case Op::sigmoid:
    return x.low > -4 && x.high < 1e30 ? between(0.0175, 1) : between(0, 1);
  case Op::relu:
    return {std::max(x.low, 0.0), std::max(x.high, 0.0), x.size, {}};
  case Op::softplus:
    return between(std::max(x.low, 0.0), std::max(x.high, 0.0) + 0.7);
  case Op::abs:
    return {std::max({x.low, -x.high, 0.0}), larger(x), x.size, {}};
  case Op::floor:
  case Op::round:
    return {x.low - 1, x.high + 1, x.size + 1, {}};
  case Op::gelu:
  case Op::gelu_tanh:
  case Op::silu:
    return {-0.3, std::max(x.high, 0.0), std::max(x.size, 0.3), {}};
  default: // nothing is known of the result
    return {-1e30, 1e30, std::max(x.size, 1.0), {}};
  }
}

static Facts binary(Op op, bool isInteger, const Facts &a, const Facts &b) {
  switch (op) {
  case Op::add:
    return {a.low + b.low, a.high + b.high, a.size + b.size, {}};
  case Op::sub: {
    Facts result{a.low - b.high, a.high - b.low, a.size + b.size, {}};
    if (isInteger && b.low >= 0)
      result.below = a.below;
    return result;
  }
  case Op::mul:
    return product(a, b);
  case Op::maximum: {
    Facts result{std::max(a.low, b.low), std::max(a.high, b.high), std::max(a.size, b.size), {}};
    // A maximum with a number below the smallest value of the extent keeps the bound `below`.
    if (a.below && b.high < static_cast<double>(a.below->min()))
      result.below = a.below;
    else if (b.below && a.high < static_cast<double>(b.below->min()))
      result.below = b.below;
    return result;
  }
  case Op::minimum: {
    Facts result{std::min(a.low, b.low), std::min(a.high, b.high), std::max(a.size, b.size), {}};
    result.below = a.below && !b.below ? a.below : b.below;
    return result;
  }
  default:
    break;
  }
  if (b.low <= 0 && b.high >= 0)
    return {-1e30, 1e30, a.size * 8, {}};
  const double nearest = std::min(b.low < 0 ? -b.low : b.low, b.high < 0 ? -b.high : b.high);
  return product(a, b.low > 0 ? between(0, 1 / nearest) : between(-1 / nearest, 0));
}

static Facts cast(ElementType to, ElementType from, const Facts &x) {
  if (isFloat(to) || !isFloat(from)) {
    Facts result = x;
    if (isFloat(to))
      result.below.reset();
    return result;
  }
  return between(std::clamp(x.low - 1, -2147483648.0, 2147483520.0),
                 std::clamp(x.high + 1, -2147483648.0, 2147483520.0));
}

static Facts contraction(const Node &node, const std::vector<Type> &types, const std::vector<Facts> &x) {
  if (node.op == Op::attention)
    return node.attributes.has_sinks || node.attributes.has_mask || node.attributes.has_lengths
               ? hull(x[2], between(0, 0))
               : x[2];
  if (node.op == Op::attention_scores) {
    Facts scores = sumOf(product(x[0], x[1]), elementsOf(types[0].shape.back()));
    scores.size *= node.attributes.scale;
    if (node.attributes.softcap != 0)
      scores.size = std::min(scores.size, node.attributes.softcap);
    scores.size += (node.attributes.has_mask ? x[2].size : 0);
    if (node.attributes.causal || node.attributes.has_lengths)
      return {-3e38, larger(scores) + scores.size, 3e38, {}};
    return {-1e30, 1e30, scores.size, {}};
  }
  double terms = elementsOf(types[0].shape.back());
  if (node.op == Op::conv2d)
    for (std::size_t i = 1; i < 4; ++i)
      terms = (i == 1 ? 1 : terms) * elementsOf(types[1].shape[i]);
  Facts result = sumOf(product(x[0], x[1]), terms);
  if (node.op == Op::conv2d)
    result = hull(result, between(0, 0)); // a window may contain padding only
  const std::size_t bias = node.op == Op::grouped_linear ? 3 : 2;
  return x.size() > bias ? binary(Op::add, false, result, x[bias]) : result;
}

Facts factsOf(const Node &node, const std::vector<Type> &types, const std::vector<Facts> &x) {
  const auto extent = [&] { return types[0].shape[node.attributes.axis]; };
  switch (node.op) {
  case Op::constant: {
    const auto [low, high] = std::minmax_element(node.attributes.values.begin(), node.attributes.values.end());
    return limited(between(*low, *high));
  }
  case Op::positions:
    return indicesBelow(extent());
  case Op::sinusoidal:
    return between(-1, 1);
  case Op::embedding:
    return x[1];
  case Op::where:
    return hull(x[1], x[2]);
  case Op::concat: {
    Facts result = x[0];
    for (const Facts &other : x)
      result = hull(result, other);
    return result;
  }
  case Op::softmax:
    return between(0, 1);
  case Op::log_softmax:
    return {-1e30, 0, 2 * x[0].size + 8, {}};
  case Op::layer_norm: {
    const double width = square_root(elementsOf(types[0].shape.back()));
    return binary(Op::add, false, product({-width, width, 3, {}}, x[1]), x[2]);
  }
  case Op::rms_norm: {
    const double width = square_root(elementsOf(types[0].shape.back())) + 1;
    return product({-width, width, 3, {}}, x[1]);
  }
  case Op::argmax:
  case Op::argsort:
    return indicesBelow(extent());
  case Op::index_add:
    return limited(
        hull(x[0], binary(Op::add, false, x[0], hull(between(0, 0), sumOf(x[2], elementsOf(types[1].shape[0]))))));
  case Op::sum:
    return limited(sumOf(x[0], elementsOf(extent())));
  case Op::cumsum:
    return limited(hull(x[0], sumOf(x[0], elementsOf(extent()))));
  case Op::max_pool2d:
    return {x[0].low, x[0].high, x[0].size, {}};
  case Op::avg_pool2d:
    return {std::min(x[0].low, 0.0), std::max(x[0].high, 0.0), x[0].size, {}};
  case Op::linear:
  case Op::grouped_linear:
  case Op::matmul:
  case Op::conv2d:
  case Op::attention:
  case Op::attention_scores:
    return limited(contraction(node, types, x));
  default:
    break;
  }
  if (family_of(node.op) == Family::comparison || family_of(node.op) == Family::logic)
    return between(0, 1);
  if (node.op == Op::cast)
    return cast(node.element, types[0].element, x[0]);
  if (family_of(node.op) == Family::binary)
    return limited(binary(node.op, !isFloat(types[0].element), x[0], x[1]));
  return family_of(node.op) == Family::unary ? limited(unary(node.op, x[0])) : x[0];
}

} // namespace kiln::fuzz
