// SPDX-License-Identifier: Apache-2.0
//
// Sorting by counting: the place of an element is the number of elements that come before it. All n^2 comparisons are
// independent of each other, so a sort is two reductions whatever the extent, also of a dynamic axis.
#pragma once

#include "kiln/derived_movement.h"

namespace kiln {

enum class SortOrder { ascending, descending };

namespace detail {

/// Whether a comes before b because of its value. NaN is the largest number and equal to itself.
template <SortOrder Order, tensor A, tensor B> constexpr auto precedes(const A &a, const B &b, Site site) {
  if constexpr (Order == SortOrder::descending)
    return precedes<SortOrder::ascending>(b, a, site);
  else if constexpr (floating(A::element))
    return logical_and(logical_not(less_equal(b, a, site), site), equal(a, a, site), site);
  else
    return less(a, b, site);
}

/// argsort of an axis in [0, rank).
template <int Axis, SortOrder Order, tensor X> constexpr auto sorted_positions(const X &x, Site site) {
  auto other_place = column_of_positions<Axis>(x, site);
  auto own = unsqueezed<Axis + 1>(x);
  auto other = unsqueezed<Axis>(x);
  auto own_place = unsqueezed<1>(other_place);
  auto is_before = where(less(other_place, own_place, site), logical_not(precedes<Order>(own, other, site), site),
                         precedes<Order>(other, own, site), site);
  auto place = sum<Axis + 1>(cast<i32>(is_before, site), site);
  // The permutation that takes each element to its place is inverted: which element has the place?
  auto has_place = equal(unsqueezed<Axis>(place), own_place, site);
  return sum<Axis + 1>(where(has_place, other_place, 0, site), site);
}

template <int Axis, tensor X> constexpr void check_sort(const X &x) {
  if constexpr (!axis_within(Axis, X::rank))
    x.tracer->fail(rules::sort_c1, Text().put("axis ").put(Axis).put(" of ").put(typed(x).data()).data());
  else if constexpr (X::element == boolean)
    x.tracer->fail(rules::sort_c2, typed(x).data());
}

} // namespace detail

/// The positions of the elements of the axis in sorted order, i32. Equal elements keep their order, and NaN is larger
/// than any number.
template <int Axis = -1, SortOrder Order = SortOrder::ascending, tensor X>
constexpr auto argsort(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_sort<Axis>(x);
  if constexpr (!detail::axis_within(Axis, X::rank) || X::element == boolean)
    return detail::filled<i32, X::shape>(x.tracer, 0);
  else
    return detail::sorted_positions<detail::normal_axis(Axis, X::rank), Order>(x, site);
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

} // namespace kiln
