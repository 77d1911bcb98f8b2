// SPDX-License-Identifier: Apache-2.0
//
// Sorted positions of an axis, and the elements at them. A look-up by positions has the gradient of the sorted
// elements.
#pragma once

#include "kiln/derived_movement.h"

namespace kiln {

enum class SortOrder { ascending, descending };

namespace detail {

/// The first `Extent` of the sorted positions of an axis in [0, rank).
template <int Axis, SortOrder Order, Dim Extent, tensor X> constexpr auto sorted_positions(const X &x) {
  Attributes attributes = along<Axis>(x, rules::sort_c1);
  attributes.reverse = Order == SortOrder::descending;
  using Result = TensorOf<i32, with_axis_extent(X::shape, Axis, Extent)>;
  return emit<Result>(x.tracer, Op::argsort, {x.node}, std::move(attributes));
}

template <int Axis, tensor X> constexpr void check_sort(const X &x) {
  if constexpr (!axis_within(Axis, X::rank))
    x.tracer->fail(rules::sort_c1, Text().put("axis ").put(Axis).put(" of ").put(typed(x).data()).data());
  else if constexpr (X::element == boolean)
    x.tracer->fail(rules::sort_c2, typed(x).data());
}

} // namespace detail

/// The positions of the elements of the axis in sorted order, i32. Equal elements keep their order, and NaN is larger
/// than any number. With a Count the result has only the first positions.
template <int Axis = -1, SortOrder Order = SortOrder::ascending, std::int64_t Count = 0, tensor X>
constexpr auto argsort(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_sort<Axis>(x);
  if constexpr (!detail::axis_within(Axis, X::rank) || X::element == boolean) {
    return detail::filled<i32, X::shape>(x.tracer, 0);
  } else {
    constexpr int axis = detail::normal_axis(Axis, X::rank);
    constexpr Dim extent = X::shape[axis], count = Count == 0 ? extent : Dim(Count);
    if constexpr (Count != 0 && (Count < 1 || extent.min() < Count)) {
      x.tracer->fail(rules::argsort_c1, Count, extent);
      return detail::filled<i32, X::shape>(x.tracer, 0);
    } else {
      return detail::sorted_positions<axis, Order, count>(x);
    }
  }
}

/// The sorted elements of the axis and their positions, which are those of `argsort`.
template <int Axis = -1, SortOrder Order = SortOrder::ascending, tensor X>
constexpr auto sort(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  auto places = argsort<Axis, Order>(x, site);
  if constexpr (!detail::axis_within(Axis, X::rank) || X::element == boolean)
    return std::pair{x, places};
  else
    return std::pair{take_along_axis<Axis>(x, places, site), places};
}

/// The Count largest elements along the axis in descending order, and their i32 indices, which differ. Among equal
/// elements the first one is chosen, and it receives the whole gradient. NaN is the largest.
template <int Count, int Axis = -1, tensor X> constexpr auto topk(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr bool is_within = detail::axis_within(Axis, X::rank);
  constexpr int axis = is_within ? detail::normal_axis(Axis, X::rank) : 0;
  constexpr Dim extent = is_within ? X::shape[axis] : Dim(1);
  if constexpr (X::element == boolean) {
    x.tracer->fail(rules::reduction_c3, detail::typed(x).data());
    return std::pair{x, x};
  } else if constexpr (!is_within) {
    x.tracer->fail(rules::reduction_c1, Text().put("axis ").put(Axis).put(" of ").put(detail::typed(x).data()).data());
    return std::pair{x, x};
  } else if constexpr (Count < 1 || extent.min() < Count) {
    x.tracer->fail(rules::topk_c1, Count, extent);
    return std::pair{x, detail::filled<i32, X::shape>(x.tracer, 0)};
  } else {
    auto places = detail::sorted_positions<axis, SortOrder::descending, Dim(Count)>(x);
    return std::pair{take_along_axis<axis>(x, places, site), places};
  }
}

} // namespace kiln
