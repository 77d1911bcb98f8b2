// SPDX-License-Identifier: Apache-2.0
//
// Sums of elements that have one index. Each element of the result compares all indices with its position and adds up
// the elements that match: one reduction without writes to a common place, so the bits do not depend on the number of
// workers, and a NaN stays in its row.
#pragma once

#include "kiln/sorting.h"

namespace kiln {

namespace detail {

/// x plus the elements of `source` [a..., R, b...] whose index is the position along the axis. Indices broadcast to the
/// source with another axis of extent 1 before R.
template <int Axis, tensor X, tensor I, tensor S>
constexpr auto added_at(const X &x, const I &indices, const S &source, Site site) {
  if constexpr (half_float(X::element)) { // rounded once
    return cast<X::element>(added_at<Axis>(cast<f32>(x, site), indices, cast<f32>(source, site), site), site);
  } else {
    auto is_here = equal(indices, unsqueezed<1>(column_of_positions<Axis>(x, site)), site);
    return add(x, sum<Axis + 1>(where(is_here, unsqueezed<Axis>(source), 0, site), site), site);
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
    constexpr auto aligned = detail::with_axis_extent(detail::ones<X::rank - axis>(), 0, I::shape[0]);
    return detail::added_at<axis>(x, detail::viewed<aligned>(indices), source, site);
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
    return detail::added_at<axis>(x, detail::unsqueezed<axis>(indices), source, site);
  }
}

} // namespace kiln
