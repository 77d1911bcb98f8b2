// SPDX-License-Identifier: Apache-2.0
//
// Operations that move elements without changing them.
#pragma once

#include "kiln/elementwise.h"

namespace kiln {

/// Reshapes x, row-major: `reshape<B, T, 12, 64>(x)`.
template <Dim... Extents, tensor X> constexpr auto reshape(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  using Result = Tensor<X::element, Extents...>;
  x.tracer->declare(Result::shape);
  if constexpr (!detail::same_count(X::shape, Result::shape))
    x.tracer->fail(rules::reshape_c1, X::shape, Result::shape);
  return detail::emit<Result>(x.tracer, Op::reshape, {x.node});
}

namespace detail {

/// Reshapes x to a Shape.
template <auto Extents, tensor X> constexpr auto viewed(const X &x) {
  return emit<TensorOf<X::element, Extents>>(x.tracer, Op::reshape, {x.node});
}

/// Expands x to a Shape.
template <auto Extents, tensor X> constexpr auto repeated(const X &x) {
  return emit<TensorOf<X::element, Extents>>(x.tracer, Op::expand, {x.node});
}

/// Inserts the reduced axis again, with size 1.
template <int Axis, std::size_t R> constexpr auto with_unit_axis(const Shape<R> &reduced) {
  Shape<R + 1> result;
  for (std::size_t i = 0, j = 0; i < R + 1; ++i)
    result[i] = static_cast<int>(i) == normal_axis(Axis, static_cast<int>(R) + 1) ? Dim(1) : reduced[j++];
  return result;
}
template <int Axis, tensor X> constexpr auto unsqueezed(const X &x) {
  return viewed<with_unit_axis<Axis>(X::shape)>(x);
}

} // namespace detail

/// Inserts an axis of extent 1, which becomes axis `Axis` of the result.
template <int Axis, tensor X> constexpr auto unsqueeze(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!detail::axis_within(Axis, X::rank + 1))
    x.tracer->fail(rules::unsqueeze_c1, Text().put("axis ").put(Axis).put(" of ").put(detail::typed(x).data()).data());
  return detail::unsqueezed<Axis>(x);
}
/// Drops an axis of extent 1.
template <int Axis, tensor X> constexpr auto squeeze(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr auto reduced = detail::without_axis(X::shape, Axis);
  if constexpr (!detail::axis_within(Axis, X::rank) ||
                !detail::same_shape(detail::with_unit_axis<Axis>(reduced), X::shape))
    x.tracer->fail(rules::squeeze_c1, Text().put("axis ").put(Axis).put(" of ").put(detail::typed(x).data()).data());
  return detail::viewed<reduced>(x);
}

/// Broadcasts `x` to this shape: `expand<B, 64>(x)`.
template <Dim... Extents, tensor X> constexpr auto expand(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  using Result = Tensor<X::element, Extents...>;
  x.tracer->declare(Result::shape);
  if constexpr (!detail::broadcasts_to(X::shape, Result::shape))
    x.tracer->fail(rules::expand_c1, X::shape, Result::shape);
  return detail::emit<Result>(x.tracer, Op::expand, {x.node});
}
/// Zeros of the given shape; `context` is any tensor of the trace.
template <ElementType E, Dim... Extents> constexpr auto zeros(const tensor auto &context, Site site = Site::here()) {
  return expand<Extents...>(detail::number<E>(context.tracer, 0), site);
}

/// Axis i of the result is axis Permutation[i] of `x`.
template <int... Permutation, tensor X> constexpr auto transpose(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr int count = sizeof...(Permutation);
  constexpr int axes[count + 1] = {Permutation..., 0};
  if (!detail::is_permutation(X::shape, axes, count)) {
    Text text = detail::typed(x);
    const char *separator = " by <";
    for (int i = 0; i < count; ++i) {
      text.put(separator).put(axes[i]);
      separator = ", ";
    }
    x.tracer->fail(rules::transpose_c1, text.put(count ? ">" : " by <>").data());
  }
  Attributes attributes;
  attributes.permutation.assign(axes, axes + count);
  using Result = TensorOf<X::element, detail::permuted(X::shape, axes, count)>;
  return detail::emit<Result>(x.tracer, Op::transpose, {x.node}, std::move(attributes));
}

namespace detail {

template <int Axis, std::size_t R, std::size_t S> constexpr bool concat_fits(const Shape<R> &a, const Shape<S> &b) {
  if constexpr (R != S)
    return true;
  for (std::size_t i = 0; i < R && i < S; ++i)
    if (static_cast<int>(i) != normal_axis(Axis, R) && !(a[i] == b[i]))
      return false;
  return true;
}

/// The result type of concat. If the dimensions have no sum, `sums` is false and the type is that of the first operand.
template <int Axis, class First, class... Rest> struct Concat {
  using type = First;
  static constexpr bool sums = true;
};
template <int Axis, class First, class Next, class... Rest> struct Concat<Axis, First, Next, Rest...> {
  static constexpr bool comparable = First::rank > 0 && First::rank == Next::rank;
  static constexpr int axis = normal_axis(Axis, First::rank);
  static constexpr bool addable = [] {
    if constexpr (comparable)
      return Dim::addable(First::shape[axis], Next::shape[axis]);
    return true;
  }();
  static constexpr auto shape = [] {
    if constexpr (comparable && addable)
      return with_axis_extent(First::shape, axis, First::shape[axis] + Next::shape[axis]);
    else
      return First::shape;
  }();
  using Tail = Concat<Axis, TensorOf<First::element, shape>, Rest...>;
  using type = typename Tail::type;
  static constexpr bool sums = addable && Tail::sums;
};

} // namespace detail

/// Concatenates the operands along the axis.
template <int Axis, tensor First, tensor... Rest> constexpr auto concat(const First &first, const Rest &...rest) {
  Tracer *tracer = first.tracer;
  [[maybe_unused]] auto check = [&](const auto &next) {
    using Next = std::remove_cvref_t<decltype(next)>;
    if constexpr (First::element != Next::element || First::rank != Next::rank)
      tracer->fail(rules::concat_c1, detail::typed(first, next).data());
    else if constexpr (!detail::concat_fits<Axis>(First::shape, Next::shape))
      tracer->fail(rules::concat_c2, detail::typed(first, next).data());
  };
  (check(rest), ...);
  using Joined = detail::Concat<Axis, First, Rest...>;
  using Result = typename Joined::type;
  if constexpr (!Joined::sums)
    tracer->fail(rules::concat_c4, detail::typed(first, rest...).data());
  auto attributes = detail::along<Axis>(first, rules::concat_c3);
  return detail::emit<Result>(tracer, Op::concat, {first.node, rest.node...}, std::move(attributes));
}

/// The elements [Start, Start + Extent) of the axis.
template <int Axis, std::int64_t Start, Dim Extent, tensor X>
constexpr auto slice(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr int axis = detail::normal_axis(Axis, X::rank);
  auto attributes = detail::along<Axis>(x, rules::slice_c1);
  attributes.start = Start;
  x.tracer->borrow(Shape<1>{{Extent}});
  if constexpr (X::rank > 0)
    if constexpr (!detail::slice_within(X::shape[axis], Start, Extent))
      x.tracer->fail(rules::slice_c2, Text().put(Start).put(" + ").put(Extent).data(), X::shape[axis]);
  using Result = TensorOf<X::element, detail::with_axis_extent(X::shape, axis, Extent)>;
  return detail::emit<Result>(x.tracer, Op::slice, {x.node}, std::move(attributes));
}

/// The last `Extent` elements of the axis.
template <int Axis, Dim Extent, tensor X> constexpr auto last(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr int axis = detail::normal_axis(Axis, X::rank);
  auto attributes = detail::along<Axis>(x, rules::last_c1);
  attributes.at_end = true;
  x.tracer->borrow(Shape<1>{{Extent}});
  if constexpr (X::rank > 0)
    if constexpr (!detail::at_least(X::shape[axis], Extent))
      x.tracer->fail(rules::last_c2, Extent, X::shape[axis]);
  using Result = TensorOf<X::element, detail::with_axis_extent(X::shape, axis, Extent)>;
  return detail::emit<Result>(x.tracer, Op::slice, {x.node}, std::move(attributes));
}

/// Replaces the axis of `table` by the axes of the i32 `indices`.
template <int Axis = 0, tensor Table, tensor Indices>
constexpr auto gather(const Table &table, const Indices &indices, Site site = Site::here()) {
  table.tracer->at(site);
  if constexpr (Indices::element != i32)
    table.tracer->fail(rules::gather_c1, detail::typed(indices).data());
  using Result = TensorOf<Table::element, detail::gather_shape(Table::shape, Indices::shape, Axis)>;
  auto attributes = detail::along<Axis>(table, rules::gather_c2);
  return detail::emit<Result>(table.tracer, Op::gather, {table.node, indices.node}, std::move(attributes));
}

} // namespace kiln
