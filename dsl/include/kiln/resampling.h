// SPDX-License-Identifier: Apache-2.0
//
// Images of another size: nearest elements, bicubic interpolation, filters without aliasing, and elements at any
// points. Each follows torch.nn.functional.interpolate (align_corners=False) or grid_sample. An axis is resampled by a
// look-up of a few taps for each result and a weighted sum; the taps and weights of an axis are constants.
#pragma once

#include "kiln/patches.h"

namespace kiln {

/// Whether a resize to a smaller size averages over all elements that a result covers.
enum class Filter { interpolate, antialias };
inline constexpr Filter antialias = Filter::antialias;

namespace detail {

/// For each result of an axis the positions of its taps and their weights: `count` of each.
struct Taps {
  std::int64_t count = 0;
  std::vector<double> places, weights;
};

/// The cubic convolution kernel (Keys 1981) with parameter a.
constexpr double cubic_filter(double x, double a) {
  x = x < 0 ? -x : x;
  if (x < 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
constexpr double triangle_filter(double x) {
  x = x < 0 ? -x : x;
  return x < 1 ? 1 - x : 0;
}

constexpr std::int64_t clamped_place(std::int64_t place, std::int64_t extent) {
  return place < 0 ? 0 : place < extent ? place : extent - 1;
}
constexpr std::int64_t floor_of(double x) {
  const auto whole = static_cast<std::int64_t>(x);
  return static_cast<double>(whole) > x ? whole - 1 : whole;
}

/// Four taps for each result; those outside of the axis are its first or last element.
constexpr Taps bicubic_taps(std::int64_t from, std::int64_t to) {
  Taps taps{4, {}, {}};
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const std::int64_t base = floor_of(at);
    for (std::int64_t tap = base - 1; tap < base + 3; ++tap) {
      taps.places.push_back(static_cast<double>(clamped_place(tap, from)));
      taps.weights.push_back(cubic_filter(at - static_cast<double>(tap), -0.75));
    }
  }
  return taps;
}

/// A filter of `radius`, stretched over the elements that a result covers. Weights are divided by their sum. A result
/// with fewer taps than the others repeats its last one with weight 0.
constexpr Taps filter_taps(std::int64_t from, std::int64_t to, double radius, const auto &filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), stretch = scale > 1 ? scale : 1;
  const double reach = radius * stretch;
  auto begin = [&](std::int64_t i) {
    return clamped_place(floor_of(scale * (static_cast<double>(i) + 0.5) - reach + 0.5), from);
  };
  auto end = [&](std::int64_t i) {
    return clamped_place(floor_of(scale * (static_cast<double>(i) + 0.5) + reach + 0.5) - 1, from) + 1;
  };
  Taps taps;
  for (std::int64_t i = 0; i < to; ++i)
    taps.count = end(i) - begin(i) > taps.count ? end(i) - begin(i) : taps.count;
  for (std::int64_t i = 0; i < to; ++i) {
    auto weight = [&](std::int64_t place) {
      return filter((static_cast<double>(place) - scale * (static_cast<double>(i) + 0.5) + 0.5) / stretch);
    };
    double sum = 0;
    for (std::int64_t place = begin(i); place < end(i); ++place)
      sum += weight(place);
    for (std::int64_t tap = 0; tap < taps.count; ++tap) {
      const std::int64_t place = begin(i) + tap, last = end(i) - 1;
      taps.places.push_back(static_cast<double>(place < last ? place : last));
      taps.weights.push_back(place <= last ? weight(place) / sum : 0);
    }
  }
  return taps;
}

/// The element for each result. PyTorch computes it in f32, where a product may round to the integer above or below.
constexpr std::vector<double> nearest_places(std::int64_t from, std::int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  std::vector<double> places;
  for (std::int64_t i = 0; i < to; ++i) {
    const auto place = static_cast<std::int64_t>(static_cast<float>(i) * scale);
    places.push_back(static_cast<double>(place < from ? place : from - 1));
  }
  return places;
}
constexpr bool repeats_each(std::int64_t from, std::int64_t to) {
  if (to % from != 0)
    return false;
  const std::vector<double> places = nearest_places(from, to);
  for (std::int64_t i = 0; i < to; ++i)
    if (places[i] != static_cast<double>(i / (to / from)))
      return false;
  return true;
}

template <int Axis, std::int64_t To, tensor X> constexpr auto nearest_along(const X &x, Site site) {
  constexpr std::int64_t from = X::shape[Axis].offset;
  if constexpr (from == To) {
    return x;
  } else if constexpr (repeats_each(from, To)) {
    auto apart = unsqueezed<Axis + 1>(x);
    constexpr auto times = with_axis_extent(decltype(apart)::shape, Axis + 1, To / from);
    return viewed<with_axis_extent(X::shape, Axis, To)>(repeated<times>(apart));
  } else {
    return gather<Axis>(x, constant_of<i32, To>(x, nearest_places(from, To)), site);
  }
}

/// Resamples an axis by constant taps. `taps(from, to)` returns them.
template <int Axis, std::int64_t To, class TapsOf, tensor X> constexpr auto resampled_along(const X &x, Site site) {
  constexpr std::int64_t from = X::shape[Axis].offset;
  if constexpr (from == To) {
    return x;
  } else {
    constexpr std::int64_t count = TapsOf()(from, To).count;
    Taps taps = TapsOf()(from, To);
    auto taken = gather<Axis>(x, constant_of<i32, To, count>(x, std::move(taps.places)), site);
    constexpr auto aligned = with_axis_extent(with_axis_extent(ones<X::rank - Axis + 1>(), 0, To), 1, count);
    auto weights = viewed<aligned>(constant_of<X::element, To, count>(x, std::move(taps.weights)));
    return sum<Axis + 1>(mul(taken, weights, site), site);
  }
}

/// Resamples height and width of an image that fits, in f32.
template <Pair Extents, class TapsOf, tensor X> constexpr auto resampled(const X &x, Site site) {
  if constexpr (half_float(X::element)) {
    return cast<X::element>(resampled<Extents, TapsOf>(cast<f32>(x, site), site), site);
  } else {
    constexpr int first = X::rank - 3;
    return resampled_along<first + 1, Extents.width, TapsOf>(resampled_along<first, Extents.height, TapsOf>(x, site),
                                                             site);
  }
}

struct BicubicTaps {
  constexpr Taps operator()(std::int64_t from, std::int64_t to) const { return bicubic_taps(from, to); }
};
/// A stretched filter, whose parameter is -0.5, not -0.75, as in PIL and PyTorch.
struct BicubicFilterTaps {
  constexpr Taps operator()(std::int64_t from, std::int64_t to) const {
    return filter_taps(from, to, 2, [](double x) { return cubic_filter(x, -0.5); });
  }
};
struct BilinearFilterTaps {
  constexpr Taps operator()(std::int64_t from, std::int64_t to) const {
    return filter_taps(from, to, 1, [](double x) { return triangle_filter(x); });
  }
};

template <tensor X> constexpr bool is_fixed_image() {
  return X::rank >= 3 && last(X::shape, 3).fixed() && last(X::shape, 2).fixed();
}

/// Checks the image and the size of its result.
template <Pair Extents, tensor X>
constexpr void check_resize(const X &x, const char *image_rule, const char *size_rule) {
  if constexpr (!is_fixed_image<X>())
    x.tracer->fail(image_rule, typed(x).data());
  else if (Extents.height < 1 || Extents.width < 1)
    x.tracer->fail(size_rule, Text().put(Extents.height).put(" by ").put(Extents.width).data());
}
template <Pair Extents, tensor X>
inline constexpr bool is_resizable = is_fixed_image<X>() && Extents.height >= 1 && Extents.width >= 1;

} // namespace detail

/// The image with another height and width: element i of an axis is element floor(i * H / H') of x, in f32 as
/// torch.nn.functional.interpolate(mode="nearest") computes it.
template <Pair Extents, tensor X> constexpr auto resize_nearest(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  detail::check_resize<Extents>(x, rules::resize_nearest_c1, rules::resize_nearest_c2);
  if constexpr (!detail::is_resizable<Extents, X>)
    return x;
  else
    return detail::nearest_along<X::rank - 2, Extents.width>(
        detail::nearest_along<X::rank - 3, Extents.height>(x, site), site);
}

namespace detail {
template <Pair Extents, class TapsOf, tensor X> constexpr auto resize_by(const X &x, Site site) {
  x.tracer->at(site);
  check_resize<Extents>(x, rules::resize_bicubic_c1, rules::resize_bicubic_c2);
  if constexpr (!floating(X::element))
    x.tracer->fail(rules::resize_bicubic_c3, typed(x).data());
  if constexpr (!is_resizable<Extents, X> || !floating(X::element))
    return x;
  else
    return resampled<Extents, TapsOf>(x, site);
}
} // namespace detail

/// The image with another height and width by cubic convolution of four by four elements, or with `antialias` of all
/// elements that a result covers.
template <Pair Extents, Filter How = Filter::interpolate, tensor X>
constexpr auto resize_bicubic(const X &x, Site site = Site::here()) {
  if constexpr (How == Filter::antialias)
    return detail::resize_by<Extents, detail::BicubicFilterTaps>(x, site);
  else
    return detail::resize_by<Extents, detail::BicubicTaps>(x, site);
}

/// resize_bilinear, or with `antialias` the mean of all elements that a result covers, weighted by a triangle.
template <Pair Extents, Filter How, tensor X> constexpr auto resize_bilinear(const X &x, Site site = Site::here()) {
  if constexpr (How == Filter::antialias)
    return detail::resize_by<Extents, detail::BilinearFilterTaps>(x, site);
  else
    return resize_bilinear<Extents>(x, site);
}

namespace detail {

/// The pixels of [B, H, W, C] nearest to the positions [B, h, w] as rows: f32 [B, h, w, C]; 0 outside of the image.
template <tensor X, tensor At> constexpr auto pixels_at(const X &x, const At &row, const At &column, Site site) {
  constexpr std::int64_t height = X::shape[1].offset, width = X::shape[2].offset;
  constexpr Dim batch = X::shape[0];
  auto is_within = [&](const At &at, std::int64_t extent) {
    return logical_and(less_equal(0, at, site), less(at, static_cast<double>(extent), site), site);
  };
  auto place = [&](const At &at, std::int64_t extent) {
    return cast<i32>(clamp(at, 0, static_cast<double>(extent - 1), site), site);
  };
  auto in_image = add(mul(place(row, height), static_cast<int>(width), site), place(column, width), site);
  constexpr Shape<3> starts{{batch, 1, 1}};
  auto first = mul(viewed<starts>(arange<batch>(x, site)), static_cast<int>(height * width), site);
  constexpr Shape<2> rows{{batch * Dim(height * width), X::shape[3]}};
  auto taken = gather<0>(viewed<rows>(x), add(first, in_image, site), site);
  auto exists = logical_and(is_within(row, height), is_within(column, width), site);
  return where(unsqueezed<-1>(exists), taken, 0, site);
}

/// grid_sample of an image [B, H, W, C] of f32 by a grid that fits.
template <tensor X, tensor Grid> constexpr auto sampled(const X &x, const Grid &grid, Site site) {
  constexpr auto points = leading<1>(Grid::shape);
  auto position = [&]<int Coordinate>(std::integral_constant<int, Coordinate>, std::int64_t extent) {
    auto u = viewed<points>(slice<-1, Coordinate, 1>(grid, site));
    const auto half = static_cast<double>(extent) / 2;
    return add(mul(u, half, site), half - 0.5, site);
  };
  auto column = position(std::integral_constant<int, 0>(), X::shape[2].offset),
       row = position(std::integral_constant<int, 1>(), X::shape[1].offset);
  auto left = floor(column, site), top = floor(row, site);
  auto right = add(left, 1, site), bottom = add(top, 1, site);
  auto to_right = sub(column, left, site), to_bottom = sub(row, top, site);
  auto corner = [&](const auto &at_row, const auto &at_column, const auto &weight) {
    return mul(pixels_at(x, at_row, at_column, site), unsqueezed<-1>(weight), site);
  };
  auto upper = add(corner(top, left, mul(sub(1, to_bottom, site), sub(1, to_right, site), site)),
                   corner(top, right, mul(sub(1, to_bottom, site), to_right, site)), site);
  auto lower = add(corner(bottom, left, mul(to_bottom, sub(1, to_right, site), site)),
                   corner(bottom, right, mul(to_bottom, to_right, site)), site);
  return add(upper, lower, site);
}

} // namespace detail

/// Bilinear samples of an image [B, H, W, C] at the points of a grid [B, h, w, 2]: [B, h, w, C]. A point is (x, y),
/// from -1 at the left and top edges to 1 at the right and bottom ones; the image is 0 outside of its elements
/// (torch.nn.functional.grid_sample).
template <tensor X, tensor Grid> constexpr auto grid_sample(const X &x, const Grid &grid, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr bool fits = [] {
    if constexpr (X::rank != 4 || Grid::rank != 4)
      return false;
    else
      return detail::is_fixed_image<X>() && X::shape[0] == Grid::shape[0] && Grid::shape[3] == Dim(2);
  }();
  if constexpr (!fits) {
    x.tracer->fail(rules::grid_sample_c1, detail::typed(x, grid).data());
    return x;
  } else if constexpr (X::element != Grid::element || !floating(X::element)) {
    x.tracer->fail(rules::grid_sample_c2, detail::typed(x, grid).data());
    return x;
  } else if constexpr (half_float(X::element)) {
    return cast<X::element>(detail::sampled(cast<f32>(x, site), cast<f32>(grid, site), site), site);
  } else {
    return detail::sampled(x, grid, site);
  }
}

} // namespace kiln
