// SPDX-License-Identifier: Apache-2.0
//
// Sums of elements that have one index. The rows of a table are added in their order by one operation, which takes time
// linear in the rows: the bits do not depend on the number of workers, and a NaN stays in its row. General axes are
// views of a table: an index of a row, or of an element, of all lines together.
#pragma once

#include "kiln/sorting.h"

namespace kiln {

namespace detail {

/// x viewed as a Shape; x itself if it has it.
template <auto Extents, tensor X> constexpr auto viewed_as(const X &x) {
  if constexpr (same_shape(X::shape, Extents))
    return x;
  else
    return viewed<Extents>(x);
}

/// How sums by index are seen as rows that are added to those of a table. `PerElement`: each element of the source has
/// an index, so the rows have one element.
template <int Axis, bool PerElement, tensor X, tensor S> struct RowsOfSums {
  static constexpr Dim extent = X::shape[Axis], count = S::shape[Axis], outer = extent_of_axes(X::shape, 0, Axis),
                       inner = extent_of_axes(X::shape, Axis + 1, X::rank), apart = PerElement ? inner : Dim(1),
                       width = PerElement ? Dim(1) : inner, height = outer * extent * apart,
                       rows = outer * count * apart;
  static constexpr bool exist = height.flaw == Flaw::none && rows.flaw == Flaw::none && width.flaw == Flaw::none &&
                                (X::element == f32 || X::element == i32);
};

/// The number of the row of each index, i32 [rows]; -1 for an index outside of the axis.
template <class Rows, bool PerElement, tensor I> constexpr auto rows_of(const I &indices, Site site) {
  constexpr Shape<3> given{{PerElement ? Rows::outer : Dim(1), Rows::count, Rows::apart}}, starts{{Rows::outer, 1, 1}};
  constexpr Shape<1> line{{Rows::rows}};
  if constexpr (Rows::outer == Dim(1) && Rows::apart == Dim(1)) {
    return viewed_as<line>(indices);
  } else {
    auto index = viewed_as<given>(indices);
    auto is_within = logical_and(less_equal(0, index, site),
                                 less_equal(index, last_position<Rows::extent>(index, site), site), site);
    auto row = [&] {
      if constexpr (Rows::outer == Dim(1))
        return index;
      else
        return add(times_extent<Rows::extent>(viewed_as<starts>(arange<Rows::outer>(index, site)), site), index, site);
    }();
    auto place = [&] {
      if constexpr (Rows::apart == Dim(1))
        return row;
      else
        return add(times_extent<Rows::apart>(row, site), arange<Rows::apart>(index, site), site);
    }();
    return viewed_as<line>(where(is_within, place, -1, site));
  }
}

/// x plus the elements of `source` by comparison of all indices with all positions, where the rows have no form of a
/// dimension. Indices broadcast to the source with another axis of extent 1 before their own.
template <int Axis, tensor X, tensor I, tensor S>
constexpr auto compared_sums(const X &x, const I &indices, const S &source, Site site) {
  auto is_here = equal(indices, unsqueezed<1>(column_of_positions<Axis>(x, site)), site);
  return add(x, sum<Axis + 1>(where(is_here, unsqueezed<Axis>(source), 0, site), site), site);
}

/// x plus the elements of `source` [a..., R, b...] whose index is the position along the axis. Indices are [R], or
/// `PerElement` like the source.
template <int Axis, bool PerElement, tensor X, tensor I, tensor S>
constexpr auto added_at(const X &x, const I &indices, const S &source, Site site) {
  using Rows = RowsOfSums<Axis, PerElement, X, S>;
  if constexpr (half_float(X::element)) { // rounded once
    return cast<X::element>(added_at<Axis, PerElement>(cast<f32>(x, site), indices, cast<f32>(source, site), site),
                            site);
  } else if constexpr (Rows::exist) {
    constexpr Shape<2> table{{Rows::height, Rows::width}}, added{{Rows::rows, Rows::width}};
    auto rows = rows_of<Rows, PerElement>(indices, site);
    auto sums = emit<TensorOf<X::element, table>>(x.tracer, Op::index_add,
                                                  {viewed_as<table>(x).node, rows.node, viewed_as<added>(source).node});
    return viewed_as<X::shape>(sums);
  } else if constexpr (PerElement) {
    return compared_sums<Axis>(x, unsqueezed<Axis>(indices), source, site);
  } else {
    constexpr auto aligned = with_axis_extent(ones<X::rank - Axis>(), 0, I::shape[0]);
    return compared_sums<Axis>(x, viewed<aligned>(indices), source, site);
  }
}

/// Whether the shapes are equal except along an axis of both.
template <std::size_t R, std::size_t S> constexpr bool same_around(int axis, const Shape<R> &a, const Shape<S> &b) {
  return R == S && same_shape(without_axis(a, axis), without_axis(b, axis));
}

} // namespace detail

/// x [a..., n, b...] plus the rows of `source` [a..., R, b...]: row r is added to row indices[r], for i32 [R]
/// (torch.index_add). A row with an index outside of the axis is ignored.
template <int Axis = 0, tensor X, tensor I, tensor S>
constexpr auto index_add(const X &x, const I &indices, const S &source, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr int axis = detail::normal_axis(Axis, X::rank);
  if constexpr (I::element != i32 || I::rank != 1) {
    x.tracer->fail(rules::index_add_c1, detail::typed(indices).data());
    return x;
  } else if constexpr (!detail::axis_within(Axis, X::rank)) {
    x.tracer->fail(rules::index_add_c2, Text().put("axis ").put(Axis).put(" of ").put(detail::typed(x).data()).data());
    return x;
  } else if constexpr (!detail::same_around(axis, X::shape, S::shape) ||
                       !detail::same_shape(S::shape, detail::with_axis_extent(X::shape, axis, I::shape[0]))) {
    x.tracer->fail(rules::index_add_c3, detail::typed(x, indices, source).data());
    return x;
  } else if constexpr (X::element != S::element || X::element == boolean) {
    x.tracer->fail(rules::index_add_c4, detail::typed(x, source).data());
    return x;
  } else {
    return detail::added_at<axis, false>(x, indices, source, site);
  }
}

/// x [a..., n, b...] plus the elements of `source` [a..., R, b...], each of which has an index along the axis, for
/// indices of the source's shape (torch.scatter_add). An element with an index outside of the axis is ignored.
template <int Axis = -1, tensor X, tensor I, tensor S>
constexpr auto scatter_add(const X &x, const I &indices, const S &source, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr int axis = detail::normal_axis(Axis, X::rank);
  if constexpr (I::element != i32) {
    x.tracer->fail(rules::scatter_add_c1, detail::typed(indices).data());
    return x;
  } else if constexpr (!detail::axis_within(Axis, X::rank)) {
    x.tracer->fail(rules::scatter_add_c2,
                   Text().put("axis ").put(Axis).put(" of ").put(detail::typed(x).data()).data());
    return x;
  } else if constexpr (!detail::same_around(axis, X::shape, S::shape) || !detail::same_shape(I::shape, S::shape)) {
    x.tracer->fail(rules::scatter_add_c3, detail::typed(x, indices, source).data());
    return x;
  } else if constexpr (X::element != S::element || X::element == boolean) {
    x.tracer->fail(rules::scatter_add_c4, detail::typed(x, source).data());
    return x;
  } else {
    return detail::added_at<axis, true>(x, indices, source, site);
  }
}

} // namespace kiln
