// SPDX-License-Identifier: Apache-2.0
//
// Operations on images. An image is [..., height, width, channels]: the channels of a pixel are contiguous, as files
// and cameras provide them, and a feature map is a list of rows for attention without a copy. Weights have PyTorch's
// layout. PyTorch's images [..., channels, height, width] take one transpose at the model's input.
#pragma once

#include "kiln/elementwise.h"

namespace kiln {

struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  int groups = 1;
};

struct Pool2dOptions {
  Pair stride = 0; // 0: same as the kernel
  Pair padding = 0;
};

namespace detail {

/// Whether the dynamic part of an extent is a multiple of a stride.
constexpr bool is_strided(const Dim &extent, int stride) {
  return extent.factor % stride == 0 && extent.second % stride == 0;
}

/// floor((extent + 2 padding - dilation (kernel - 1) - 1) / stride) + 1: the number of windows along an axis.
constexpr Dim window_count(const Dim &extent, int kernel, int stride, int padding, int dilation) {
  if (stride < 1 || !is_strided(extent, stride))
    return Dim(1);
  std::int64_t last = extent.offset + std::int64_t{2} * padding - std::int64_t(dilation) * (kernel - 1) - 1;
  Dim count = extent;
  count.offset = (last >= 0 ? last / stride : -((stride - 1 - last) / stride)) + 1;
  count.factor = extent.factor / stride;
  count.second = extent.second / stride;
  return count.fixed() ? Dim(count.offset) : count;
}
constexpr Dim window_rows(const Dim &extent, const Window &w) {
  return window_count(extent, w.kernel.height, w.stride.height, w.padding.height, w.dilation.height);
}
constexpr Dim window_columns(const Dim &extent, const Window &w) {
  return window_count(extent, w.kernel.width, w.stride.width, w.padding.width, w.dilation.width);
}

/// Returns the shape of the image that a window produces; broken rules yield dimensions of 1.
template <std::size_t R> constexpr auto windowed(const Shape<R> &image, const Window &window, Dim channels) {
  Shape<(R < 3 ? 3 : R)> result;
  for (std::size_t i = 0; i + 3 < R; ++i)
    result[i] = image[i];
  Dim rows = window_rows(last(image, 3), window), columns = window_columns(last(image, 2), window);
  result[result.size() - 3] = rows.min() < 1 ? Dim(1) : rows;
  result[result.size() - 2] = columns.min() < 1 ? Dim(1) : columns;
  result[result.size() - 1] = channels;
  return result;
}

/// Checks the rules of a window on an image of rank 3 or more.
template <Window W, tensor X> constexpr void check_window(const X &x) {
  auto least = [](const Pair &pair) { return pair.height < pair.width ? pair.height : pair.width; };
  if (least(W.kernel) < 1) {
    x.tracer->fail(rules::window_c4, Text().put(least(W.kernel)).data());
    return;
  }
  if (least(W.stride) < 1 || least(W.dilation) < 1 || least(W.padding) < 0) {
    x.tracer->fail(rules::window_c1, Text()
                                         .put("stride ")
                                         .put(least(W.stride))
                                         .put(", dilation ")
                                         .put(least(W.dilation))
                                         .put(", padding ")
                                         .put(least(W.padding))
                                         .data());
    return;
  }
  constexpr Dim height = last(X::shape, 3), width = last(X::shape, 2);
  if (!is_strided(height, W.stride.height))
    x.tracer->fail(rules::window_c3, height, Text().put("a multiple of ").put(W.stride.height).data());
  if (!is_strided(width, W.stride.width))
    x.tracer->fail(rules::window_c3, width, Text().put("a multiple of ").put(W.stride.width).data());
  if (window_rows(height, W).min() < 1 || window_columns(width, W).min() < 1)
    x.tracer->fail(rules::window_c2, typed(x).data());
}

template <Conv2dOptions Options, tensor X, tensor W>
constexpr auto conv2d(const X &x, const W &weight, std::vector<int> &&operands) {
  constexpr bool is_image = X::rank >= 3;
  constexpr bool is_weight = [] {
    bool fixed = W::rank == 4;
    for (const Dim &dim : W::shape)
      fixed = fixed && dim.fixed();
    return fixed;
  }();
  if constexpr (!is_image)
    x.tracer->fail(rules::conv2d_c1, typed(x).data());
  if constexpr (!is_weight)
    x.tracer->fail(rules::conv2d_c2, typed(weight).data());
  constexpr Dim outputs = last(W::shape, 4);
  constexpr Window window{Pair(static_cast<int>(last(W::shape, 2).offset), static_cast<int>(last(W::shape).offset)),
                          Options.stride, Options.padding, Options.dilation};
  if constexpr (is_image && is_weight) {
    if constexpr (!(last(X::shape) == last(W::shape, 3) * Dim(Options.groups)))
      x.tracer->fail(rules::conv2d_c3, last(X::shape), last(W::shape, 3) * Dim(Options.groups));
    if (Options.groups < 1 || outputs.offset % Options.groups != 0)
      x.tracer->fail(rules::conv2d_c4, outputs, Text().put("a multiple of ").put(Options.groups).data());
    check_window<window>(x);
  }
  if constexpr (X::element != W::element || !floating(X::element))
    x.tracer->fail(rules::conv2d_c6, typed(x, weight).data());
  Attributes attributes;
  attributes.window = window;
  attributes.groups = Options.groups;
  using Result = TensorOf<X::element, windowed(X::shape, window, outputs)>;
  return emit<Result>(x.tracer, Op::conv2d, std::move(operands), std::move(attributes));
}

template <Op O, Window W, tensor X> constexpr auto pool(const X &x) {
  if constexpr (X::rank < 3)
    x.tracer->fail(rules::pool2d_c1, typed(x).data());
  else
    check_window<W>(x);
  if constexpr (!floating(X::element))
    x.tracer->fail(rules::pool2d_c2, typed(x).data());
  auto fits = [](int padding, int kernel) { return std::int64_t{2} * padding <= kernel; };
  if (!fits(W.padding.height, W.kernel.height) || !fits(W.padding.width, W.kernel.width))
    x.tracer->fail(rules::pool2d_c3, W.padding.height > W.padding.width ? W.padding.height : W.padding.width,
                   Text().put("at most half of ").put(W.kernel.height).put(" by ").put(W.kernel.width).data());
  Attributes attributes;
  attributes.window = W;
  using Result = TensorOf<X::element, windowed(X::shape, W, last(X::shape))>;
  return emit<Result>(x.tracer, O, {x.node}, std::move(attributes));
}

constexpr Window pool_window(Pair kernel, Pool2dOptions options) {
  return {kernel, options.stride == Pair(0) ? kernel : options.stride, options.padding, 1};
}

} // namespace detail

/// y[..., i, j, o] = sum over a, b, c of x[..., i stride + a dilation - padding, j ..., c] weight[o, c, a, b]; x is 0
/// outside of its bounds. With `groups` > 1 each output channel reads only the input channels of its group.
template <Conv2dOptions Options = Conv2dOptions{}, tensor X, tensor W>
constexpr auto conv2d(const X &x, const W &weight, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::conv2d<Options>(x, weight, {x.node, weight.node});
}
/// conv2d plus a bias [outputs].
template <Conv2dOptions Options = Conv2dOptions{}, tensor X, tensor W, tensor B>
constexpr auto conv2d(const X &x, const W &weight, const B &bias, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr Shape<1> outputs{{detail::last(W::shape, 4)}};
  if constexpr (!detail::same_shape(B::shape, outputs))
    x.tracer->fail(rules::conv2d_c5, B::shape, outputs);
  if constexpr (B::element != X::element)
    x.tracer->fail(rules::conv2d_c6, detail::typed(x, bias).data());
  return detail::conv2d<Options>(x, weight, {x.node, weight.node, bias.node});
}

/// The largest element of each window, or NaN if the window has one; padding is ignored.
template <Pair Kernel, Pool2dOptions Options = Pool2dOptions{}, tensor X>
constexpr auto max_pool2d(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::pool<Op::max_pool2d, detail::pool_window(Kernel, Options)>(x);
}
/// The mean of each window; the padding counts as zeros.
template <Pair Kernel, Pool2dOptions Options = Pool2dOptions{}, tensor X>
constexpr auto avg_pool2d(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  return detail::pool<Op::avg_pool2d, detail::pool_window(Kernel, Options)>(x);
}
/// avg_pool2d to an image of this size; `<1>` is the mean over the image.
template <Pair Extents, tensor X> constexpr auto adaptive_avg_pool2d(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr Dim height = detail::last(X::shape, 3), width = detail::last(X::shape, 2);
  constexpr bool divides = X::rank >= 3 && height.fixed() && width.fixed() && Extents.height >= 1 &&
                           Extents.width >= 1 && height.offset % Extents.height == 0 &&
                           width.offset % Extents.width == 0;
  if constexpr (X::rank >= 3 && !divides)
    x.tracer->fail(rules::pool2d_c4, detail::typed(x).data(),
                   Text().put("multiples of ").put(Extents.height).put(" by ").put(Extents.width).data());
  constexpr Pair kernel =
      divides ? Pair(static_cast<int>(height.offset / Extents.height), static_cast<int>(width.offset / Extents.width))
              : Pair(1);
  return detail::pool<Op::avg_pool2d, detail::pool_window(kernel, {})>(x);
}

/// Resizes the image: each element is interpolated bilinearly between four elements of x, as
/// torch.nn.functional.interpolate(mode="bilinear", align_corners=False) does.
template <Pair Extents, tensor X> constexpr auto resize_bilinear(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (X::rank < 3)
    x.tracer->fail(rules::resize_bilinear_c1, detail::typed(x).data());
  else if constexpr (!detail::last(X::shape, 3).fixed() || !detail::last(X::shape, 2).fixed())
    x.tracer->fail(rules::resize_bilinear_c2, detail::typed(x).data());
  if constexpr (!floating(X::element))
    x.tracer->fail(rules::resize_bilinear_c3, detail::typed(x).data());
  constexpr auto shape = [] {
    auto result = X::shape;
    if constexpr (X::rank >= 3) {
      result[X::rank - 3] = Extents.height;
      result[X::rank - 2] = Extents.width;
    }
    return result;
  }();
  x.tracer->declare(shape);
  return detail::emit<TensorOf<X::element, shape>>(x.tracer, Op::resize_bilinear, {x.node});
}

} // namespace kiln
