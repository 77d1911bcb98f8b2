// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding: pairs of numbers of a head are rotated by angles that `sinusoidal` computed, once for all
// layers. The rotation is composed of movement and arithmetic, which the compiler fuses into one kernel and merges for
// queries and keys.
#pragma once

#include "kiln/elementwise.h"
#include "kiln/frequencies.h"
#include "kiln/movement.h"
#include "kiln/sources.h"

namespace kiln {

/// Which numbers of a head are rotated together: i and i + R/2 (Llama, GPT-NeoX), or 2i and 2i + 1 (GPT-J, Su et al.).
enum class RotaryPairs : std::uint8_t { halves, adjacent };

namespace detail {

/// The extents before the width: [..., T] of x [..., T, Heads * D].
template <std::size_t R> constexpr auto rows_of(const Shape<R> &shape) { return leading<1>(shape); }

/// Aligns angles [..., T, ...] with the pairs of heads: [..., T, 1, R/2, 1] of adjacent pairs, [..., T, 1, 1, R/2] of
/// halves; each with an extent of `ends` in place of that of the pair's two numbers.
template <RotaryPairs Pairs, std::size_t R>
constexpr auto pairs_of(const Shape<R> &rows, std::int64_t heads, std::int64_t pairs, std::int64_t ends) {
  if constexpr (Pairs == RotaryPairs::halves)
    return appended(appended(appended(rows, heads), ends), pairs);
  else
    return appended(appended(appended(rows, heads), pairs), ends);
}

/// Rotates x [..., T, Heads * R], whose heads are rotated as a whole.
template <int Heads, RotaryPairs Pairs, tensor X, tensor A>
constexpr auto rotated(const X &x, const A &angles, Site site) {
  constexpr int ends_axis = Pairs == RotaryPairs::halves ? -2 : -1;
  constexpr std::int64_t pairs = last(A::shape).offset / 2;
  // sin and cos of pair i are columns 2i and 2i + 1.
  constexpr auto places = rows_of(A::shape);
  auto turns = viewed<appended(appended(appended(appended(places, 1), 1), pairs), 2)>(angles);
  constexpr auto each = pairs_of<Pairs>(places, 1, pairs, 1);
  auto sin = viewed<each>(slice<-1, 0, 1>(turns, site));
  auto cos = viewed<each>(slice<-1, 1, 1>(turns, site));
  auto split = viewed<pairs_of<Pairs>(rows_of(X::shape), Heads, pairs, 2)>(x);
  auto a = slice<ends_axis, 0, 1>(split, site), b = slice<ends_axis, 1, 1>(split, site);
  auto turned = concat<ends_axis>(sub(mul(a, cos, site), mul(b, sin, site), site),
                                  add(mul(b, cos, site), mul(a, sin, site), site));
  return viewed<X::shape>(turned);
}

} // namespace detail

/// Rotary position embedding (Su et al. 2021) of x [..., T, Heads * D]: rotates the pairs among the first R numbers of
/// each head by the angles of the row's position, sinusoidal(positions, frequencies) [T, R] or [..., T, R].
template <int Heads, RotaryPairs Pairs = RotaryPairs::halves, tensor X, tensor A>
constexpr auto rotary(const X &x, const A &angles, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr Dim width = detail::last(X::shape);
  constexpr int heads = Heads >= 1 ? Heads : 1;
  constexpr std::int64_t depth = width.fixed() ? width.offset / heads : 0;
  if constexpr (Heads < 1 || X::rank < 2 || depth == 0 || width.offset % (std::int64_t{2} * heads) != 0) {
    x.tracer->fail(rules::rotary_c1, width, Text().put("a multiple of ").put(std::int64_t{2} * heads).data());
    return x;
  } else {
    constexpr Dim angles_width = detail::last(A::shape);
    constexpr std::int64_t turned = angles_width.fixed() ? angles_width.offset : 0;
    constexpr bool fits = A::element == X::element && turned >= 2 && turned % 2 == 0 && turned <= depth;
    constexpr Shape<2> of_rows{{detail::last(X::shape, 2), Dim(turned)}};
    constexpr auto of_all = detail::with_last(X::shape, turned);
    if constexpr (!fits || (!detail::same_shape(A::shape, of_rows) && !detail::same_shape(A::shape, of_all))) {
      constexpr Shape<2> wanted{{detail::last(X::shape, 2), Dim(depth)}};
      x.tracer->fail(rules::rotary_c2, detail::typed(angles).data(), Text().put(X::element).put(wanted).data());
      return x;
    } else if constexpr (turned == depth) {
      return detail::rotated<heads, Pairs>(x, angles, site);
    } else {
      constexpr auto rows = detail::rows_of(X::shape);
      auto split = detail::viewed<detail::appended(detail::appended(rows, heads), depth)>(x);
      auto first = detail::viewed<detail::appended(rows, heads * turned)>(slice<-1, 0, turned>(split, site));
      auto part = detail::viewed<detail::appended(detail::appended(rows, heads), turned)>(
          detail::rotated<heads, Pairs>(first, angles, site));
      return detail::viewed<X::shape>(concat<-1>(part, slice<-1, turned, depth - turned>(split, site)));
    }
  }
}

/// The same with the angles of i32 or f32 positions.
template <int Heads, RotaryPairs Pairs = RotaryPairs::halves, tensor X, tensor P, std::int64_t Width, int Axes>
constexpr auto rotary(const X &x, const P &positions, const Frequencies<Width, Axes> &frequencies,
                      Site site = Site::here()) {
  auto angles = sinusoidal(positions, frequencies, site);
  if constexpr (X::element == f32 || !floating(X::element))
    return rotary<Heads, Pairs>(x, angles, site);
  else
    return rotary<Heads, Pairs>(x, cast<X::element>(angles, site), site);
}

} // namespace kiln
