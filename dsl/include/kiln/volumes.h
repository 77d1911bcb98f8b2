// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools of volumes [..., depth, height, width, channels]. A convolution reads the planes of its window
// as more channels of one plane, so that all of its products are one conv2d. A pool is one of each plane, and one along
// the depth.
#pragma once

#include "kiln/patches.h"

namespace kiln {

/// Numbers for depth, height and width.
struct Triple {
  int depth = 0, height = 0, width = 0;

  constexpr Triple() = default;
  constexpr Triple(int all) : depth(all), height(all), width(all) {}
  constexpr Triple(int depth, int height, int width) : depth(depth), height(height), width(width) {}
  constexpr bool operator==(const Triple &) const = default;
  constexpr Pair plane() const { return {height, width}; }
};

struct Conv3dOptions {
  Triple stride = 1, padding = 0, dilation = 1;
  int groups = 1;
};
struct Pool3dOptions {
  Triple stride = 0; // 0: same as the kernel
  Triple padding = 0;
};

namespace detail {

/// The window along the depth, as one along the height of an image.
constexpr Window window_of_depth(int kernel, const Conv3dOptions &options) {
  return {Pair(kernel, 1), Pair(options.stride.depth, 1), Pair(options.padding.depth, 0),
          Pair(options.dilation.depth, 1)};
}

/// [..., D, H, W * C] of a volume [..., D, H, W, C].
template <std::size_t R> constexpr auto of_lines(const Shape<R> &volume) {
  auto lines = leading<1>(volume);
  lines[R - 2] = last(volume, 2) * last(volume);
  return lines;
}

/// Checks the rules of the window along the depth of a volume.
template <Window W, tensor X> constexpr void check_depth(const X &x) {
  check_window<W>(TensorOf<X::element, without_axis(X::shape, X::rank - 3)>(x.tracer, x.node));
}

/// Puts the planes that each window along the depth reads into the channels: [..., D, H, W, C] -> [..., D', H, W, C *
/// kernel]; within each group of channels, plane by plane.
template <Window W, std::int64_t Groups, tensor X> constexpr auto planes_as_channels(const X &x, Site site) {
  constexpr int depth = X::rank - 4;
  constexpr Dim windows = window_rows(X::shape[depth], W), channels = last(X::shape);
  if constexpr (W == Window()) {
    return x;
  } else {
    auto padded = pad<depth, W.padding.height, W.padding.height>(x, 0, site);
    auto plane = [&]<std::int64_t Tap>(std::integral_constant<std::int64_t, Tap>) {
      if constexpr (W.stride.height == 1) {
        return slice<depth, Tap * W.dilation.height, windows>(padded, site);
      } else {
        auto from =
            add(mul(arange<windows>(x, site), W.stride.height, site), static_cast<int>(Tap * W.dilation.height), site);
        return gather<depth>(padded, from, site);
      }
    };
    auto group = [&]<std::int64_t Group>(std::integral_constant<std::int64_t, Group>) {
      constexpr std::int64_t width = channels.offset / Groups;
      return [&]<std::int64_t... Tap>(std::integer_sequence<std::int64_t, Tap...>) {
        return std::tuple{slice<-1, Group * width, width>(plane(std::integral_constant<std::int64_t, Tap>()), site)...};
      }(std::make_integer_sequence<std::int64_t, W.kernel.height>());
    };
    return [&]<std::int64_t... Group>(std::integer_sequence<std::int64_t, Group...>) {
      return std::apply([](const auto &...part) { return concat<-1>(part...); },
                        std::tuple_cat(group(std::integral_constant<std::int64_t, Group>())...));
    }(std::make_integer_sequence<std::int64_t, Groups>());
  }
}

template <tensor X, tensor W> constexpr bool is_volume_and_weight(int groups) {
  bool fits = X::rank >= 4 && W::rank == 5 && groups >= 1;
  for (const Dim &dim : W::shape)
    fits = fits && dim.fixed();
  return fits;
}

/// conv2d of the planes. `convolve` receives the planes and their weight.
template <Conv3dOptions Options, tensor X, tensor W>
constexpr auto conv3d(const X &x, const W &weight, const auto &convolve, Site site) {
  if constexpr (!is_volume_and_weight<X, W>(Options.groups)) {
    x.tracer->fail(rules::conv3d_c1, typed(x, weight).data());
    return x;
  } else if constexpr (!(last(X::shape) == W::shape[1] * Dim(Options.groups)) ||
                       W::shape[0].offset % Options.groups != 0) {
    x.tracer->fail(rules::conv3d_c2, typed(x, weight).data());
    return x;
  } else {
    constexpr int kernel = static_cast<int>(W::shape[2].offset);
    constexpr Window window = window_of_depth(kernel, Options);
    check_depth<window>(x);
    if constexpr (window.stride.height < 1 || window.dilation.height < 1 || window.padding.height < 0 ||
                  window_rows(X::shape[X::rank - 4], window).min() < 1)
      return x;
    else
      return convolve(planes_as_channels<window, Options.groups>(x, site),
                      reshape<W::shape[0], W::shape[1] * Dim(kernel), W::shape[3], W::shape[4]>(
                          transpose<0, 2, 1, 3, 4>(weight, site), site));
  }
}
constexpr Conv2dOptions of_planes(const Conv3dOptions &options) {
  return {options.stride.plane(), options.padding.plane(), options.dilation.plane(), options.groups};
}

template <Op O, Triple Kernel, Pool3dOptions Options, tensor X> constexpr auto pool3d(const X &x) {
  if constexpr (X::rank < 4) {
    x.tracer->fail(rules::pool3d_c1, typed(x).data());
    return x;
  } else if constexpr (!last(X::shape).fixed()) {
    x.tracer->fail(rules::pool3d_c1, typed(x).data());
    return x;
  } else {
    constexpr Triple stride = Options.stride == Triple(0) ? Kernel : Options.stride;
    auto planes = pool<O, Window{Kernel.plane(), stride.plane(), Options.padding.plane(), 1}>(x);
    constexpr auto of_planes = decltype(planes)::shape;
    auto y = pool<O, Window{Pair(Kernel.depth, 1), Pair(stride.depth, 1), Pair(Options.padding.depth, 0), 1}>(
        viewed<of_lines(of_planes)>(planes));
    return viewed<with_axis_extent(of_planes, X::rank - 4, last(decltype(y)::shape, 3))>(y);
  }
}

} // namespace detail

/// 3-d convolution: x [..., D, H, W, C], weight [O, C / groups, kd, kh, kw] -> [..., D', H', W', O], as conv2d.
template <Conv3dOptions Options = Conv3dOptions{}, tensor X, tensor W>
constexpr auto conv3d(const X &x, const W &weight, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::conv3d<Options>(
      x, weight,
      [&](const auto &planes, const auto &factors) {
        return conv2d<detail::of_planes(Options)>(planes, factors, site);
      },
      site);
}
/// conv3d plus a bias [outputs].
template <Conv3dOptions Options = Conv3dOptions{}, tensor X, tensor W, tensor B>
constexpr auto conv3d(const X &x, const W &weight, const B &bias, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::conv3d<Options>(
      x, weight,
      [&](const auto &planes, const auto &factors) {
        return conv2d<detail::of_planes(Options)>(planes, factors, bias, site);
      },
      site);
}

/// max_pool2d of windows of volumes [..., D, H, W, C].
template <Triple Kernel, Pool3dOptions Options = Pool3dOptions{}, tensor X>
constexpr auto max_pool3d(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::pool3d<Op::max_pool2d, Kernel, Options>(x);
}
/// avg_pool2d of windows of volumes; the padding counts as zeros.
template <Triple Kernel, Pool3dOptions Options = Pool3dOptions{}, tensor X>
constexpr auto avg_pool3d(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::pool3d<Op::avg_pool2d, Kernel, Options>(x);
}

} // namespace kiln
