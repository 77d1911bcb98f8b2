// SPDX-License-Identifier: Apache-2.0
//
// Images cut into parts and put together: pixels from channels and back, and the windows of a convolution as rows.
// Images are [..., height, width, channels]; the order of channels is PyTorch's, so that its weights fit.
#pragma once

#include "kiln/derived_movement.h"
#include "kiln/image.h"

namespace kiln {

namespace detail {

/// Permutes the axes from `First` on: result axis First + i is axis First + Order[i].
template <int First, int... Order, tensor X> constexpr auto transposed_from(const X &x, Site site) {
  return [&]<int... Outer>(std::integer_sequence<int, Outer...>) {
    return transpose<Outer..., (First + Order)...>(x, site);
  }(std::make_integer_sequence<int, First>());
}

/// [..., a, b, c...]: the outer axes of an image, then these.
template <std::size_t R, std::size_t N> constexpr auto image_shape(const Shape<R> &image, const Dim (&axes)[N]) {
  Shape<R - 3 + N> result;
  for (std::size_t i = 0; i + 3 < R; ++i)
    result[i] = image[i];
  for (std::size_t i = 0; i < N; ++i)
    result[R - 3 + i] = axes[i];
  return result;
}

template <int Factor, tensor X> constexpr bool is_shuffled() {
  return X::rank >= 3 && Factor >= 1 && Factor < 32768 && last(X::shape).fixed() &&
         last(X::shape).divisible(std::int64_t{Factor} * Factor);
}
template <int Factor, tensor X> constexpr bool is_unshuffled() {
  return X::rank >= 3 && Factor < 32768 && last(X::shape, 3).divisible(Factor) && last(X::shape, 2).divisible(Factor);
}

} // namespace detail

/// Turns channels into pixels: [..., H, W, C * Factor^2] -> [..., H * Factor, W * Factor, C]; pixel (i, j) of a block
/// is from channel (c * Factor + i) * Factor + j (torch.nn.PixelShuffle).
template <int Factor, tensor X> constexpr auto pixel_shuffle(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!detail::is_shuffled<Factor, X>()) {
    x.tracer->fail(rules::pixel_shuffle_c1, detail::typed(x).data(),
                   Text().put("a multiple of ").put(Factor).put("^2").data());
    return x;
  } else {
    constexpr Dim height = detail::last(X::shape, 3), width = detail::last(X::shape, 2), factor = Factor,
                  channels = detail::last(X::shape).offset / (std::int64_t{Factor} * Factor);
    constexpr auto parts = detail::image_shape(X::shape, {height, width, channels, factor, factor});
    constexpr auto image = detail::image_shape(X::shape, {height * factor, width * factor, channels});
    auto moved = detail::transposed_from<X::rank - 3, 0, 3, 1, 4, 2>(detail::viewed<parts>(x), site);
    return detail::viewed<image>(moved);
  }
}

/// The inverse of pixel_shuffle: [..., H * Factor, W * Factor, C] -> [..., H, W, C * Factor^2].
template <int Factor, tensor X> constexpr auto pixel_unshuffle(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!detail::is_unshuffled<Factor, X>()) {
    x.tracer->fail(rules::pixel_unshuffle_c1, detail::typed(x).data(), Text().put("multiples of ").put(Factor).data());
    return x;
  } else {
    constexpr Dim height = detail::last(X::shape, 3).divided(Factor), width = detail::last(X::shape, 2).divided(Factor),
                  channels = detail::last(X::shape), factor = Factor;
    constexpr auto parts = detail::image_shape(X::shape, {height, factor, width, factor, channels});
    constexpr auto image = detail::image_shape(X::shape, {height, width, channels * factor * factor});
    auto moved = detail::transposed_from<X::rank - 3, 0, 2, 4, 1, 3>(detail::viewed<parts>(x), site);
    return detail::viewed<image>(moved);
  }
}

struct UnfoldOptions {
  Pair stride = 1, padding = 0, dilation = 1;
};

namespace detail {

constexpr Window unfold_window(Pair kernel, const UnfoldOptions &options) {
  return {kernel, options.stride, options.padding, options.dilation};
}

/// Looks up the elements of all windows along an axis: [..., n, ...] -> [..., windows, kernel, ...].
template <int Axis, Dim Windows, int Kernel, int Stride, int Dilation, tensor X>
constexpr auto unfolded(const X &x, Site site) {
  auto first = mul(unsqueezed<-1>(arange<Windows>(x, site)), Stride, site);
  return gather<Axis>(x, add(first, mul(arange<Kernel>(x, site), Dilation, site), site), site);
}

/// Adds up the elements of all windows along an axis: [..., windows * kernel, ...] -> [..., Extent, ...]. Each element
/// of the result reads one candidate for each position in the window, and ignores those that do not exist.
template <int Axis, Dim Extent, Dim Windows, int Kernel, int Stride, int Padding, int Dilation, tensor X>
constexpr auto folded(const X &x, Site site) {
  constexpr auto per_candidate = with_axis_extent(with_axis_extent(ones<X::rank - Axis + 1>(), 0, Extent), 1, Kernel);
  auto within = arange<Kernel>(x, site);
  auto padded = add(unsqueezed<-1>(arange<Extent>(x, site)), Padding, site);
  auto start = sub(padded, mul(within, Dilation, site), site);
  auto window = div(start, Stride, site);
  auto is_start = logical_and(less_equal(0, start, site), equal(mul(window, Stride, site), start, site), site);
  auto exists = logical_and(is_start, less_equal(window, last_position<Windows>(x, site), site), site);
  auto taken = gather<Axis>(x, add(mul(window, Kernel, site), within, site), site);
  return sum<Axis + 1>(where(viewed<per_candidate>(exists), taken, 0, site), site);
}

} // namespace detail

/// The windows of an image as rows (im2col, torch.nn.Unfold): [..., H, W, C] -> [..., H' * W', C * kh * kw], window by
/// window in row-major order; column (c * kh + a) * kw + b is x[..., i * stride + a * dilation - padding, ..., c], or 0
/// outside of the image.
template <Pair Kernel, UnfoldOptions Options = UnfoldOptions{}, tensor X>
constexpr auto unfold(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (X::rank < 3) {
    x.tracer->fail(rules::unfold_c1, detail::typed(x).data());
    return x;
  } else {
    constexpr Window window = detail::unfold_window(Kernel, Options);
    detail::check_window<window>(x);
    constexpr int first = X::rank - 3;
    constexpr auto counts = detail::windowed(X::shape, window, detail::last(X::shape));
    constexpr Dim rows = counts[first], columns = counts[first + 1], channels = counts[first + 2];
    constexpr auto result = detail::appended(detail::appended(detail::leading<3>(X::shape), rows * columns),
                                             channels * Dim(std::int64_t{Kernel.height} * Kernel.width));
    constexpr Pair padding = Options.padding, stride = Options.stride, dilation = Options.dilation;
    auto padded = pad<-2, padding.width, padding.width>(pad<-3, padding.height, padding.height>(x, 0, site), 0, site);
    auto in_rows = detail::unfolded<first, rows, Kernel.height, stride.height, dilation.height>(padded, site);
    auto in_both = detail::unfolded<first + 2, columns, Kernel.width, stride.width, dilation.width>(in_rows, site);
    // [..., H', kh, W', kw, C] -> [..., H', W', C, kh, kw]
    return detail::viewed<result>(detail::transposed_from<first, 0, 2, 4, 1, 3>(in_both, site));
  }
}

/// The sum of the windows of an image (col2im, torch.nn.Fold): [..., H' * W', C * kh * kw] -> [..., Height, Width, C];
/// each element is the sum of the elements that `unfold` would make of it.
template <Dim Height, Dim Width, Pair Kernel, UnfoldOptions Options = UnfoldOptions{}, tensor X>
constexpr auto fold(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr Window window = detail::unfold_window(Kernel, Options);
  constexpr std::int64_t area = std::int64_t{Kernel.height} * Kernel.width;
  constexpr Dim channels = area >= 1 ? Dim(detail::last(X::shape).offset / area) : Dim(1);
  constexpr auto image =
      detail::appended(detail::appended(detail::appended(detail::leading<2>(X::shape), Height), Width), channels);
  using Image = TensorOf<X::element, image>;
  constexpr Dim rows = detail::window_rows(Height, window), columns = detail::window_columns(Width, window);
  x.tracer->borrow(image);
  detail::check_window<window>(Image(x.tracer, x.node));
  if constexpr (X::rank < 2 || !detail::last(X::shape).fixed() || !detail::last(X::shape).divisible(area) ||
                !(detail::last(X::shape, 2) == rows * columns)) {
    x.tracer->fail(rules::fold_c1, detail::typed(x).data(),
                   Text().put(rows * columns).put(" windows of C * ").put(area).data());
    return Image(x.tracer, x.node);
  } else {
    constexpr int first = X::rank - 2;
    constexpr Dim height = Kernel.height, width = Kernel.width;
    constexpr Pair padding = Options.padding, stride = Options.stride, dilation = Options.dilation;
    constexpr auto parts = detail::image_shape(image, {rows, columns, channels, height, width});
    constexpr auto lines = detail::image_shape(image, {rows * height, columns * width, channels});
    // [..., H', W', C, kh, kw] -> [..., H' * kh, W' * kw, C]
    auto moved = detail::viewed<lines>(detail::transposed_from<first, 0, 3, 1, 4, 2>(detail::viewed<parts>(x), site));
    auto in_rows =
        detail::folded<first, Height, rows, Kernel.height, stride.height, padding.height, dilation.height>(moved, site);
    return detail::folded<first + 1, Width, columns, Kernel.width, stride.width, padding.width, dilation.width>(in_rows,
                                                                                                                site);
  }
}

} // namespace kiln
