// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices: linear, logits, matmul, attention with its options.
#pragma once

#include "kiln/elementwise.h"

namespace kiln {

/// A square root for constant expressions, by Newton's method: exact to the last place or the one before.
constexpr double square_root(double x) {
  double root = x > 1 ? x : 1;
  for (double next = (root + x / root) / 2; next < root; next = (root + x / root) / 2)
    root = next;
  return root;
}

namespace detail {

template <WeightOrder Order, tensor X, tensor W>
constexpr auto linear(const X &x, const W &weight, std::vector<int> &&operands, const char *width_rule) {
  constexpr bool out_first = Order == WeightOrder::out_in;
  constexpr Dim in = last(W::shape, out_first ? 1 : 2), out = last(W::shape, out_first ? 2 : 1);
  if constexpr (X::rank < 1)
    x.tracer->fail(rules::linear_c2, typed(x).data());
  if constexpr (W::rank != 2)
    x.tracer->fail(rules::linear_c3, typed(weight).data());
  if constexpr (last(X::shape) != in)
    x.tracer->fail(width_rule, last(X::shape), in);
  if constexpr (X::element != W::element || !floating(X::element))
    x.tracer->fail(rules::linear_c5, typed(x, weight).data());
  Attributes attributes;
  attributes.weight_order = Order;
  using Result = TensorOf<X::element, with_last(X::shape, out)>;
  return emit<Result>(x.tracer, Op::linear, std::move(operands), std::move(attributes));
}

} // namespace detail

/// x W^T for a weight [out, in] (the default), x W for a weight [in, out].
template <WeightOrder Order = WeightOrder::out_in, tensor X, tensor W>
constexpr auto linear(const X &x, const W &weight, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::linear<Order>(x, weight, {x.node, weight.node}, rules::linear_c1);
}
/// The same plus a bias [out].
template <WeightOrder Order = WeightOrder::out_in, tensor X, tensor W, tensor B>
constexpr auto linear(const X &x, const W &weight, const B &bias, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr Shape<1> out{{detail::last(W::shape, Order == WeightOrder::out_in ? 2 : 1)}};
  if constexpr (!detail::same_shape(B::shape, out))
    x.tracer->fail(rules::linear_c4, B::shape, out);
  if constexpr (B::element != X::element)
    x.tracer->fail(rules::linear_c5, detail::typed(x, bias).data());
  return detail::linear<Order>(x, weight, {x.node, weight.node, bias.node}, rules::linear_c1);
}

/// a [..., M, K] times b [..., K, N], leading extents broadcast.
template <tensor A, tensor B> constexpr auto matmul(const A &a, const B &b, Site site = Site::here()) {
  a.tracer->at(site);
  if constexpr (A::rank < 2 || B::rank < 2)
    a.tracer->fail(rules::matmul_c2, detail::typed(a, b).data());
  if constexpr (detail::last(A::shape) != detail::last(B::shape, 2))
    a.tracer->fail(rules::matmul_c1, detail::last(A::shape), detail::last(B::shape, 2));
  if constexpr (!detail::broadcasts(detail::leading<2>(A::shape), detail::leading<2>(B::shape)))
    a.tracer->fail(rules::matmul_c3, detail::typed(a, b).data());
  if constexpr (A::element != B::element || !floating(A::element))
    a.tracer->fail(rules::matmul_c4, detail::typed(a, b).data());
  using Result = TensorOf<A::element, detail::matmul_shape(A::shape, B::shape)>;
  return detail::emit<Result>(a.tracer, Op::matmul, {a.node, b.node});
}

// --- attention
// ---------------------------------------------------------------------------------------------------------------

/// What attention looks at: `kiln::causal | kiln::lengths(n)`. Absent tensors have the type None.
struct None {};
template <class Mask = None, class Lengths = None> struct AttentionOptions {
  static constexpr bool has_mask = !std::is_same_v<Mask, None>;
  static constexpr bool has_lengths = !std::is_same_v<Lengths, None>;
  bool causal = false;
  double scale = 0; // 0: 1 / sqrt(query width / heads)
  bool scaled = false;
  Mask mask{};
  Lengths lengths{};
};

/// Query i sees keys 0 .. i + (keys - queries).
inline constexpr AttentionOptions<> causal{true};
/// Multiplies the scores before the mask is added.
constexpr AttentionOptions<> scale(double factor) { return {false, factor, true}; }
/// Added to the scaled scores; broadcasts to [..., queries, keys].
template <tensor M> constexpr AttentionOptions<M> mask(const M &mask) { return {false, 0, false, mask}; }
/// i32 [...]: keys at or beyond the length do not count.
template <tensor L> constexpr AttentionOptions<None, L> lengths(const L &lengths) {
  return {false, 0, false, None(), lengths};
}

template <class M1, class L1, class M2, class L2>
constexpr auto operator|(const AttentionOptions<M1, L1> &a, const AttentionOptions<M2, L2> &b) {
  using A = AttentionOptions<M1, L1>;
  using B = AttentionOptions<M2, L2>;
  static_assert(!(A::has_mask && B::has_mask), "kiln: attention requires at most one mask [attention_c13]");
  static_assert(!(A::has_lengths && B::has_lengths),
                "kiln: attention requires at most one tensor of lengths [attention_c14]");
  auto either = [](auto x, auto y) {
    if constexpr (std::is_same_v<decltype(x), None>)
      return y;
    else
      return x;
  };
  auto mask = either(a.mask, b.mask);
  auto lengths = either(a.lengths, b.lengths);
  return AttentionOptions<decltype(mask), decltype(lengths)>{a.causal || b.causal, b.scaled ? b.scale : a.scale,
                                                             a.scaled || b.scaled, mask, lengths};
}

/// softmax(scale q k^T + mask) v for each of `Heads` equal parts of the widths: q [..., Tq, H*D], k [..., Tk, H*D],
/// v [..., Tk, H*E] -> [..., Tq, H*E].
template <int Heads, tensor Q, tensor K, tensor V, class Mask = None, class Lengths = None>
constexpr auto attention(const Q &q, const K &k, const V &v, const AttentionOptions<Mask, Lengths> &options = {},
                         Site site = Site::here()) {
  using detail::appended, detail::at_least, detail::broadcasts_to, detail::emit, detail::last, detail::leading,
      detail::same_shape, detail::typed, detail::with_last;
  static_assert(Heads >= 1, "kiln: attention requires at least one head [attention_c15]");
  Tracer *tracer = q.tracer;
  tracer->at(site);
  if constexpr (Q::rank < 2 || K::rank < 2 || V::rank < 2)
    tracer->fail(rules::attention_c6, typed(q, k, v).data());
  constexpr Dim width = last(Q::shape), queries = last(Q::shape, 2), keys = last(K::shape, 2);
  constexpr Dim values = last(V::shape);
  if (!width.fixed() || width.offset % Heads != 0)
    tracer->fail(rules::attention_c1, width, Text().put("a multiple of ").put(Heads).data());
  if constexpr (last(K::shape) != width)
    tracer->fail(rules::attention_c2, last(K::shape), width);
  if (!values.fixed() || values.offset % Heads != 0)
    tracer->fail(rules::attention_c3, values, Text().put("a multiple of ").put(Heads).data());
  if constexpr (last(V::shape, 2) != keys)
    tracer->fail(rules::attention_c4, last(V::shape, 2), keys);
  constexpr auto batch = leading<2>(Q::shape);
  if constexpr (!same_shape(leading<2>(K::shape), batch) || !same_shape(leading<2>(V::shape), batch))
    tracer->fail(rules::attention_c5, typed(q, k, v).data());
  if constexpr (Q::element != K::element || Q::element != V::element || !floating(Q::element))
    tracer->fail(rules::attention_c12, typed(q, k, v).data());
  if (options.causal && !at_least(keys, queries))
    tracer->fail(rules::attention_c10, keys, queries);
  if (options.scaled && !(options.scale > 0))
    tracer->fail(rules::attention_c11, options.scale);

  std::vector<int> operands{q.node, k.node, v.node};
  Attributes attributes;
  attributes.heads = Heads;
  attributes.causal = options.causal;
  attributes.scale =
      options.scaled ? options.scale : 1 / square_root(static_cast<double>(width.min()) / static_cast<double>(Heads));
  if constexpr (!std::is_same_v<Mask, None>) {
    constexpr auto scores = appended(appended(batch, queries), keys);
    if constexpr (!broadcasts_to(Mask::shape, scores))
      tracer->fail(rules::attention_c7, Mask::shape, scores);
    if constexpr (Mask::element != Q::element)
      tracer->fail(rules::attention_c8, Mask::element, Q::element);
    operands.push_back(options.mask.node);
    attributes.has_mask = true;
  }
  if constexpr (!std::is_same_v<Lengths, None>) {
    if constexpr (Lengths::element != i32 || !same_shape(Lengths::shape, batch))
      tracer->fail(rules::attention_c9, typed(options.lengths).data(), Text().put(i32).put(batch).data());
    operands.push_back(options.lengths.node);
    attributes.has_lengths = true;
  }
  using Result = TensorOf<Q::element, with_last(Q::shape, values)>;
  return emit<Result>(tracer, Op::attention, std::move(operands), std::move(attributes));
}

} // namespace kiln
