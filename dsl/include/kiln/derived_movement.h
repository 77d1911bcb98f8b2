// SPDX-License-Identifier: Apache-2.0
//
// Composite operations that move elements, like those of derived.h: padding, reversal, cyclic shifts, elements by
// index. They are slices, concatenations and look-ups, so their results are exact and have gradients.
#pragma once

#include "kiln/derived.h"

namespace kiln {

namespace detail {

template <int Axis, std::int64_t Before, std::int64_t After, tensor X>
inline constexpr bool is_padding = axis_within(Axis, X::rank) && Before >= 0 && After >= 0;

template <int Axis, std::int64_t Before, std::int64_t After, tensor X> constexpr void check_padding(const X &x) {
  if (!is_padding<Axis, Before, After, X>)
    x.tracer->fail(rules::pad_c1, Text().put(Before).put(" and ").put(After).put(" of ").put(typed(x).data()).data());
}

/// Concatenates x and `part(count, is_at_end)` on both sides; a side without elements is left out.
template <int Axis, std::int64_t Before, std::int64_t After, tensor X>
constexpr auto between(const X &x, const auto &part) {
  constexpr std::integral_constant<std::int64_t, Before> before;
  constexpr std::integral_constant<std::int64_t, After> after;
  if constexpr (Before == 0 && After == 0)
    return x;
  else if constexpr (Before == 0)
    return concat<Axis>(x, part(after, std::true_type()));
  else if constexpr (After == 0)
    return concat<Axis>(part(before, std::false_type()), x);
  else
    return concat<Axis>(part(before, std::false_type()), x, part(after, std::true_type()));
}

} // namespace detail

/// Pads the axis with Before elements before it and After elements after it, all of one value.
template <int Axis, std::int64_t Before, std::int64_t After, tensor X>
constexpr auto pad(const X &x, double value = 0, Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_padding<Axis, Before, After>(x);
  if constexpr (!detail::is_padding<Axis, Before, After, X>)
    return x;
  else
    return detail::between<Axis, Before, After>(
        x, [&]<std::int64_t Count>(std::integral_constant<std::int64_t, Count>, auto) {
          return detail::filled<X::element, detail::with_axis_extent(X::shape, Axis, Count)>(x.tracer, value);
        });
}

/// Reverses the elements of a fixed axis.
template <int Axis, tensor X> constexpr auto flip(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr int axis = detail::normal_axis(Axis, X::rank);
  constexpr Dim extent = X::rank > 0 ? X::shape[axis] : Dim(1);
  if constexpr (!detail::axis_within(Axis, X::rank) || !extent.fixed()) {
    x.tracer->fail(rules::flip_c1, detail::typed(x).data());
    return x;
  } else if constexpr (extent == Dim(1)) {
    return x;
  } else {
    std::vector<double> backwards;
    for (std::int64_t i = extent.offset; i > 0; --i)
      backwards.push_back(static_cast<double>(i - 1));
    return gather<axis>(x, detail::constant_of<i32, extent>(x, std::move(backwards)), site);
  }
}

/// Selects the elements of x that `pad` adds: those next to the first or last one, mirrored at it (NumPy's and
/// PyTorch's reflect), the first or last one (edge, replicate), or those of the other end (wrap, circular).
enum class PadMode { reflect, edge, wrap };

namespace detail {

/// The most elements that a mode can add on each side of an axis.
constexpr std::int64_t most_padding(PadMode mode, const Dim &extent) {
  return mode == PadMode::edge ? Dim::largest : mode == PadMode::wrap ? extent.min() : extent.min() - 1;
}

/// Returns the elements that a mode adds before the axis, or after it if `AtEnd`.
template <PadMode Mode, int Axis, std::int64_t Count, bool AtEnd, tensor X>
constexpr auto border(const X &x, Site site) {
  if constexpr (Mode == PadMode::edge) {
    constexpr auto shape = with_axis_extent(X::shape, Axis, Count);
    if constexpr (AtEnd)
      return repeated<shape>(kiln::last<Axis, 1>(x, site));
    else
      return repeated<shape>(slice<Axis, 0, 1>(x, site));
  } else if constexpr (Mode == PadMode::wrap) {
    if constexpr (AtEnd)
      return slice<Axis, 0, Count>(x, site);
    else
      return kiln::last<Axis, Count>(x, site);
  } else {
    if constexpr (AtEnd)
      return flip<Axis>(slice<Axis, 0, Count>(kiln::last<Axis, Count + 1>(x, site), site), site);
    else
      return flip<Axis>(slice<Axis, 1, Count>(x, site), site);
  }
}

} // namespace detail

/// Pads the axis with Before and After elements of x: `pad<0, 2, 1, PadMode::reflect>(x)`.
template <int Axis, std::int64_t Before, std::int64_t After, PadMode Mode, tensor X>
constexpr auto pad(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_padding<Axis, Before, After>(x);
  if constexpr (!detail::is_padding<Axis, Before, After, X>) {
    return x;
  } else {
    constexpr Dim extent = X::shape[detail::normal_axis(Axis, X::rank)];
    constexpr std::int64_t count = Before < After ? After : Before, most = detail::most_padding(Mode, extent);
    if constexpr (count > most) {
      x.tracer->fail(rules::pad_c2, Text().put(count).put(" of ").put(extent).data(),
                     Text().put("at most ").put(most).data());
      return x;
    } else {
      return detail::between<Axis, Before, After>(
          x,
          [&]<std::int64_t Count, bool AtEnd>(std::integral_constant<std::int64_t, Count>, std::bool_constant<AtEnd>) {
            return detail::border<Mode, Axis, Count, AtEnd>(x, site);
          });
    }
  }
}

namespace detail {

/// The last position along an axis of this extent: a number, or i32 [1] if the extent is dynamic.
template <Dim Extent> constexpr auto last_position(const tensor auto &context, Site site) {
  if constexpr (Extent.fixed())
    return static_cast<int>(Extent.offset - 1);
  else
    return kiln::last<0, 1>(arange<Extent>(context, site), site);
}
/// i32 y times an extent.
template <Dim Extent> constexpr auto times_extent(const tensor auto &y, Site site) {
  if constexpr (Extent == Dim(1))
    return y;
  else if constexpr (Extent.fixed())
    return mul(y, static_cast<int>(Extent.offset), site);
  else
    return mul(y, add(last_position<Extent>(y, site), 1, site), site);
}

} // namespace detail

/// Cyclic shift of the axis (torch.roll): element i becomes element i + By, and elements past the end re-enter at the
/// beginning. If an axis may be shorter than the shift, the elements are looked up at positions modulo its extent.
template <int Axis, std::int64_t By, tensor X> constexpr auto roll(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!detail::axis_within(Axis, X::rank)) {
    x.tracer->fail(rules::roll_c1, Text().put("axis ").put(Axis).put(" of ").put(detail::typed(x).data()).data());
    return x;
  } else {
    constexpr int axis = detail::normal_axis(Axis, X::rank);
    constexpr Dim extent = X::shape[axis];
    constexpr std::int64_t least = extent.min() < 1 ? 1 : extent.min(), rest = By % least;
    constexpr std::int64_t by = extent.fixed() ? (rest + least) % least : By;
    if constexpr (by == 0) {
      return x;
    } else if constexpr (by > 0 && by < least) {
      return concat<axis>(last<axis, by>(x, site), slice<axis, 0, extent - Dim(by)>(x, site));
    } else if constexpr (by < 0 && -by < least) {
      return concat<axis>(slice<axis, -by, extent + Dim(by)>(x, site), slice<axis, 0, -by>(x, site));
    } else {
      auto count = add(detail::last_position<extent>(x, site), 1, site);
      auto from = remainder(sub(positions<axis>(x, site), static_cast<double>(by), site), count, site);
      return gather<axis>(x, remainder(add(from, count, site), count, site), site);
    }
  }
}

/// 1 where the last axis of the result is at the index, otherwise 0: i32 [...] -> [..., Classes]. An index outside of
/// [0, Classes) has zeros only. E may be `boolean`.
template <Dim Classes, ElementType E = f32, tensor I>
constexpr auto one_hot(const I &indices, Site site = Site::here()) {
  indices.tracer->at(site);
  if constexpr (I::element != i32)
    indices.tracer->fail(rules::one_hot_c1, detail::typed(indices).data());
  auto is_here = equal(detail::unsqueezed<-1>(indices), arange<Classes>(indices, site), site);
  if constexpr (E == boolean)
    return is_here;
  else
    return cast<E>(is_here, site);
}

namespace detail {

/// The number of elements of the axes [first, end).
template <std::size_t R> constexpr Dim extent_of_axes(const Shape<R> &shape, std::size_t first, std::size_t end) {
  Dim product = 1;
  for (std::size_t axis = first; axis < end; ++axis)
    product = product * shape[axis];
  return product;
}

/// [n, 1, ...]: the positions of an axis of x, aligned with that axis.
template <int Axis, tensor X> constexpr auto column_of_positions(const X &x, Site site) {
  constexpr auto column = with_axis_extent(ones<X::rank - Axis>(), 0, X::shape[Axis]);
  return viewed<column>(positions<Axis>(x, site));
}

/// take_along_axis by comparison of each index with all positions, where the number of elements has no form of a
/// dimension.
template <int Axis, tensor X, tensor I> constexpr auto compared_along(const X &x, const I &index, Site site) {
  if constexpr (X::element == boolean) {
    return less(0, compared_along<Axis>(cast<i32>(x, site), index, site), site);
  } else {
    auto is_here = equal(unsqueezed<Axis + 1>(index), column_of_positions<Axis>(x, site), site);
    return sum<Axis + 1>(where(is_here, unsqueezed<Axis>(x), 0, site), site);
  }
}

/// take_along_axis of operands that fit. x is viewed as [outer, n, inner] and read as one line of elements.
template <int Axis, tensor X, tensor I> constexpr auto looked_up_along(const X &x, const I &index, Site site) {
  constexpr Dim extent = X::shape[Axis], outer = extent_of_axes(X::shape, 0, Axis),
                inner = extent_of_axes(X::shape, Axis + 1, X::rank);
  constexpr Shape<3> lines{{outer, I::shape[Axis], inner}}, starts{{outer, 1, 1}};
  auto of_line = viewed<lines>(index);
  auto row = [&] {
    if constexpr (outer == Dim(1))
      return of_line;
    else
      return add(times_extent<extent>(viewed<starts>(arange<outer>(x, site)), site), of_line, site);
  }();
  auto place = [&] {
    if constexpr (inner == Dim(1))
      return row;
    else
      return add(times_extent<inner>(row, site), arange<inner>(x, site), site);
  }();
  constexpr Shape<1> line{{outer * extent * inner}};
  return viewed<I::shape>(gather<0>(viewed<line>(x), place, site));
}

} // namespace detail

/// The elements of x at the indices along the axis: y[a..., i, b...] = x[a..., indices[a..., i, b...], b...]. An index
/// outside of the axis is clamped.
template <int Axis = -1, tensor X, tensor I>
constexpr auto take_along_axis(const X &x, const I &indices, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr int axis = detail::normal_axis(Axis, X::rank);
  if constexpr (I::element != i32) {
    x.tracer->fail(rules::take_along_axis_c1, detail::typed(indices).data());
    return x;
  } else if constexpr (!detail::axis_within(Axis, X::rank)) {
    x.tracer->fail(rules::take_along_axis_c2,
                   Text().put("axis ").put(Axis).put(" of ").put(detail::typed(x).data()).data());
    return x;
  } else if constexpr (!detail::same_shape(detail::without_axis(X::shape, axis),
                                           detail::without_axis(I::shape, axis)) ||
                       I::rank != X::rank) {
    x.tracer->fail(rules::take_along_axis_c3, detail::typed(x, indices).data());
    return x;
  } else {
    auto index = minimum(maximum(indices, 0, site), detail::last_position<X::shape[axis]>(x, site), site);
    if constexpr (detail::extent_of_axes(X::shape, 0, X::rank).flaw == Flaw::none)
      return detail::looked_up_along<axis>(x, index, site);
    else
      return detail::compared_along<axis>(x, index, site);
  }
}

} // namespace kiln
