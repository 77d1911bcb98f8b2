// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: linear, grouped_linear, matmul.
#pragma once

#include "kiln/elementwise.h"

namespace kiln {

/// Square root for constant expressions, by Newton's method; the error is at most one unit in the last place.
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
/// linear() plus a bias [out].
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

namespace detail {

/// Whether x has this rank and only static extents.
template <tensor X> constexpr bool is_static(int rank) {
  for (const Dim &extent : X::shape)
    if (!extent.fixed())
      return false;
  return X::rank == rank;
}

template <WeightOrder Order, tensor X, tensor W, tensor Ends>
constexpr auto grouped_linear(const X &x, const W &weight, const Ends &ends, std::vector<int> &&operands) {
  constexpr bool out_first = Order == WeightOrder::out_in;
  constexpr bool has_weight = is_static<W>(2), has_ends = is_static<Ends>(1);
  constexpr std::int64_t rows = has_weight ? W::shape[0].offset : 1, groups = has_ends ? Ends::shape[0].offset : 1;
  constexpr bool is_divided = rows % groups == 0;
  constexpr Dim each = is_divided ? rows / groups : rows, other = last(W::shape);
  constexpr Dim in = out_first ? other : each, out = out_first ? each : other;
  if constexpr (X::rank != 2)
    x.tracer->fail(rules::grouped_linear_c1, typed(x).data());
  if constexpr (!has_weight)
    x.tracer->fail(rules::grouped_linear_c2, typed(weight).data());
  if constexpr (!has_ends || Ends::element != i32)
    x.tracer->fail(rules::grouped_linear_c3, typed(ends).data());
  if constexpr (!is_divided)
    x.tracer->fail(rules::grouped_linear_c4, Text().put(Dim(rows)).put(" rows for ").put(Dim(groups)).data());
  if constexpr (last(X::shape) != in)
    x.tracer->fail(rules::grouped_linear_c5, last(X::shape), in);
  if constexpr (X::element != W::element || !floating(X::element))
    x.tracer->fail(rules::grouped_linear_c7, typed(x, weight).data());
  Attributes attributes;
  attributes.weight_order = Order;
  using Result = TensorOf<X::element, with_last(X::shape, out)>;
  return emit<Result>(x.tracer, Op::grouped_linear, std::move(operands), std::move(attributes));
}

} // namespace detail

/// The linear of each row's group: rows are sorted by group, and group g ends before row ends[g], i32 [groups]; the
/// last group has all rows that are left. The weights of the groups, [out, in] each (or [in, out]), follow one another
/// along the first axis: [groups * out, in].
template <WeightOrder Order = WeightOrder::out_in, tensor X, tensor W, tensor Ends>
constexpr auto grouped_linear(const X &x, const W &weight, const Ends &ends, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::grouped_linear<Order>(x, weight, ends, {x.node, weight.node, ends.node});
}
/// grouped_linear() plus the bias of each row's group, [groups * out].
template <WeightOrder Order = WeightOrder::out_in, tensor X, tensor W, tensor Ends, tensor B>
constexpr auto grouped_linear(const X &x, const W &weight, const Ends &ends, const B &bias, Site site = Site::here()) {
  x.tracer->at(site);
  auto result = detail::grouped_linear<Order>(x, weight, ends, {x.node, weight.node, ends.node, bias.node});
  constexpr Shape<1> expected{{Dim(detail::last(Ends::shape).offset * detail::last(decltype(result)::shape).offset)}};
  if constexpr (!detail::same_shape(B::shape, expected))
    x.tracer->fail(rules::grouped_linear_c6, B::shape, expected);
  if constexpr (B::element != X::element)
    x.tracer->fail(rules::grouped_linear_c7, detail::typed(x, bias).data());
  return result;
}

/// Matrix product of a [..., M, K] and b [..., K, N]; the leading dimensions broadcast.
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

} // namespace kiln
