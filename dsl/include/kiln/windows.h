// SPDX-License-Identifier: Apache-2.0
//
// Windowed attention (Swin, Liu et al. 2021): partitioning an image into windows, the relative position bias, and the
// mask of a shifted window. Images have fixed dimensions [..., height, width, channels].
#pragma once

#include "kiln/blocks.h"
#include "kiln/derived_movement.h"

namespace kiln {

namespace detail {

/// Views [..., H, W, C] as [..., H / Size, Size, W / Size, Size, C].
template <std::int64_t Size, std::size_t R> constexpr auto window_axes(const Shape<R> &image) {
  auto shape = appended(appended(leading<3>(image), last(image, 3).offset / Size), Size);
  return appended(appended(appended(shape, last(image, 2).offset / Size), Size), last(image));
}

template <std::size_t R> constexpr auto swapped_axes(Shape<R> shape) {
  const Dim former = shape[R - 4];
  shape[R - 4] = shape[R - 3];
  shape[R - 3] = former;
  return shape;
}

/// Swaps the second and third of the last five axes.
template <tensor X> constexpr auto swap_window_axes(const X &x, Site site) {
  return [&]<int... Outer>(std::integer_sequence<int, Outer...>) {
    constexpr int first = sizeof...(Outer);
    return transpose<Outer..., first, first + 2, first + 1, first + 3, first + 4>(x, site);
  }(std::make_integer_sequence<int, X::rank - 5>());
}

/// Whether the image has fixed dimensions that are multiples of the window size.
template <tensor X> constexpr bool is_cut_by(std::int64_t size) {
  if constexpr (X::rank < 3)
    return false;
  else
    return size >= 1 && last(X::shape, 3).fixed() && last(X::shape, 2).fixed() &&
           last(X::shape, 3).offset % size == 0 && last(X::shape, 2).offset % size == 0;
}

} // namespace detail

/// Partitions an image: [..., H, W, C] -> [..., windows, Size * Size, C], row by row.
template <std::int64_t Size, tensor X> constexpr auto to_windows(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  if constexpr (!detail::is_cut_by<X>(Size)) {
    x.tracer->fail(rules::windows_c1, detail::typed(x).data(), Text().put("multiples of ").put(Size).data());
    return x;
  } else {
    constexpr std::int64_t count = detail::last(X::shape, 3).offset / Size * (detail::last(X::shape, 2).offset / Size);
    constexpr auto shape =
        detail::appended(detail::appended(detail::appended(detail::leading<3>(X::shape), Dim(count)), Dim(Size * Size)),
                         detail::last(X::shape));
    auto cut = detail::swap_window_axes(detail::viewed<detail::window_axes<Size>(X::shape)>(x), site);
    return detail::viewed<shape>(cut);
  }
}

/// Reassembles the image [..., Height, Width, C] from windows [..., windows, Size * Size, C].
template <std::int64_t Size, Dim Height, Dim Width, tensor X>
constexpr auto from_windows(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr auto image = detail::appended(
      detail::appended(detail::appended(detail::leading<3>(X::shape), Height), Width), detail::last(X::shape));
  using Image = TensorOf<X::element, image>;
  if constexpr (X::rank < 3 || !detail::is_cut_by<Image>(Size) || !detail::same_count(X::shape, image)) {
    x.tracer->fail(rules::windows_c1, detail::typed(x).data(), Text().put("multiples of ").put(Size).data());
    return Image(x.tracer, x.node);
  } else {
    constexpr auto swapped = detail::swapped_axes(detail::window_axes<Size>(image));
    return detail::viewed<image>(detail::swap_window_axes(detail::viewed<swapped>(x), site));
  }
}

/// Relative position bias of each head within a window: table [(2 Size - 1)^2, Heads] -> [Heads, Size^2, Size^2]. The
/// table row for two positions is (row difference + Size - 1) * (2 Size - 1) + column difference + Size - 1.
template <std::int64_t Size, tensor Table> constexpr auto relative_bias(const Table &table, Site site = Site::here()) {
  table.tracer->at(site);
  constexpr bool countable = Size >= 1 && Size <= 1024;
  constexpr std::int64_t side = countable ? 2 * Size - 1 : 1, count = countable ? Size * Size : 1,
                         size = countable ? Size : 1;
  if constexpr (!countable || Table::rank != 2 || !(detail::first(Table::shape) == Dim(side * side)))
    table.tracer->fail(rules::relative_bias_c1, detail::typed(table).data(),
                       Text().put(side * side).put(" rows").data());
  // The table row is computed as a difference of one number per position. This keeps constants small, since constexpr
  // evaluation steps are limited.
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<double>(i / size * side + i % size));
  auto number = detail::constant_of<i32, count, 1>(table, std::move(numbers));
  auto apart = sub(number, reshape<1, count>(number, site), site);
  auto rows = add(apart, detail::number<i32>(table.tracer, (size - 1) * side + size - 1), site);
  return transpose<2, 0, 1>(gather<0>(table, rows, site), site);
}

/// Attention mask of a shifted image: 0 between positions of a window that were neighbours before the image was shifted
/// by `Shift`, -100 between all others: f32 [windows, Size^2, Size^2].
template <std::int64_t Size, std::int64_t Shift, Dim Height, Dim Width>
constexpr auto shift_mask(const tensor auto &context, Site site = Site::here()) {
  context.tracer->at(site);
  using Image = Tensor<f32, Height, Width, 1>;
  if constexpr (!detail::is_cut_by<Image>(Size) || !Image::sound) {
    context.tracer->fail(rules::windows_c1, Image::shape, Text().put("multiples of ").put(Size).data());
    return detail::number<f32>(context.tracer, 0);
  } else {
    constexpr std::int64_t count = Size * Size, height = Height.offset, width = Width.offset,
                           windows = height / Size * (width / Size);
    // Rows and columns have three regions each: the complete windows, and the two parts that the last window joins.
    auto parts = [](std::int64_t extent, double by) {
      std::vector<double> result;
      for (std::int64_t at = 0; at < extent; ++at)
        result.push_back(at < extent - Size ? 0 : at < extent - Shift ? by : 2 * by);
      return result;
    };
    auto rows = detail::constant_of<f32, height / Size, 1, Size, 1>(context, parts(height, 3));
    auto columns = detail::constant_of<f32, 1, width / Size, 1, Size>(context, parts(width, 1));
    auto of = reshape<windows, count>(add(rows, columns, site), site);
    auto apart = sub(reshape<windows, count, 1>(of, site), reshape<windows, 1, count>(of, site), site);
    return where(less(mul(apart, apart, site), 0.5, site), detail::number<f32>(context.tracer, 0),
                 detail::number<f32>(context.tracer, -100), site);
  }
}

/// Multi-head attention within windows of Size x Size positions of an image [..., H, W, Channels] that is shifted by
/// `Shift` up and left, with a relative position bias: qkv, proj, relative_position_bias_table.
template <std::int64_t Channels, int Heads, std::int64_t Size, std::int64_t Shift = 0, WeightType Weight = f32>
class WindowAttention : public Named {
public:
  using Named::Named;

  template <tensor X> constexpr auto operator()(const X &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    x.tracer->at(site);
    if constexpr (!detail::is_cut_by<X>(Size)) {
      x.tracer->fail(rules::windows_c1, detail::typed(x).data(), Text().put("multiples of ").put(Size).data());
      return x;
    } else {
      constexpr std::int64_t height = detail::last(X::shape, 3).offset, width = detail::last(X::shape, 2).offset;
      auto windows = to_windows<Size>(roll<-2, -Shift>(roll<-3, -Shift>(x, site), site), site);
      auto joint = qkv(windows, site);
      auto q = slice<-1, 0, Channels>(joint, site), k = slice<-1, Channels, Channels>(joint, site),
           v = slice<-1, 2 * Channels, Channels>(joint, site);
      constexpr std::int64_t side = 2 * Size - 1;
      auto table = detail::weight<Weight.element, side * side, Heads>(x, "relative_position_bias_table",
                                                                      Initial::normal(0.02), site);
      auto bias = relative_bias<Size>(table, site);
      auto y = proj(attention<Heads>(q, k, v, mask(with_shift<X::rank - 3, height, width>(bias, site)), site), site);
      return roll<-2, Shift>(roll<-3, Shift>(from_windows<Size, height, width>(y, site), site), site);
    }
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  /// Returns the bias as a per-head mask of windows with `Outer` leading axes: [1 ..., windows or 1, Heads, Size^2,
  /// Size^2].
  template <int Outer, std::int64_t Height, std::int64_t Width>
  static constexpr auto with_shift(const tensor auto &bias, Site site) {
    constexpr std::int64_t count = Size * Size, windows = Shift == 0 ? 1 : Height / Size * (Width / Size);
    constexpr auto shape =
        detail::masked_shape<true>(detail::appended(detail::ones<Outer>(), windows), Heads, count, count);
    if constexpr (Shift == 0)
      return detail::viewed<shape>(bias);
    else
      return detail::viewed<shape>(
          add(bias,
              reshape<windows, 1, count, count>(
                  cast<Weight.element>(shift_mask<Size, Shift, Height, Width>(bias, site), site), site),
              site));
  }

  Linear<Channels, 3 * Channels, true, WeightOrder::out_in, Weight> qkv{"qkv"};
  Linear<Channels, Channels, true, WeightOrder::out_in, Weight> proj{"proj"};
};

/// A Swin block on an image [..., H, W, Channels], pre-norm: norm1, attn, norm2, mlp. A window as large as the image is
/// not shifted.
template <std::int64_t Channels, int Heads, std::int64_t Size, bool Shifted, std::int64_t Hidden = 4 * Channels,
          WeightType Weight = f32>
class SwinBlock : public Named {
public:
  using Named::Named;

  constexpr auto operator()(const tensor auto &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    return forward(x, site);
  }
  constexpr auto forward(const tensor auto &x, Site site = {}) const {
    auto attended = add(x, attn(norm1(x, site), site), site);
    return add(attended, mlp(norm2(attended, site), site), site);
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  LayerNorm<Channels, Weight.element> norm1{"norm1"}, norm2{"norm2"};
  WindowAttention<Channels, Heads, Size, Shifted ? Size / 2 : 0, Weight> attn{"attn"};
  Mlp<Channels, Hidden, Activation::gelu, true, Weight> mlp{"mlp"};
};

/// Merges 2 x 2 neighbouring positions of an image into one with twice the channels: norm, reduction.
template <std::int64_t Channels, WeightType Weight = f32> class PatchMerging : public Named {
public:
  using Named::Named;

  template <tensor X> constexpr auto operator()(const X &x, Site site = Site::here()) const {
    ScopeGuard guard(*x.tracer, scope_in(x.tracer->at(site)));
    x.tracer->at(site);
    if constexpr (!detail::is_cut_by<X>(2)) {
      x.tracer->fail(rules::windows_c1, detail::typed(x).data(), "multiples of 2");
      return reduction(norm(x, site), site);
    } else {
      constexpr auto shape = detail::with_last(
          detail::with_axis_extent(detail::with_axis_extent(X::shape, -3, detail::last(X::shape, 3).offset / 2), -2,
                                   detail::last(X::shape, 2).offset / 2),
          4 * detail::last(X::shape, 1));
      // [..., H / 2, row, W / 2, column, C] -> [..., H / 2, W / 2, column, row, C]
      auto cut = detail::viewed<detail::window_axes<2>(X::shape)>(x);
      auto merged = [&]<int... Outer>(std::integer_sequence<int, Outer...>) {
        constexpr int first = sizeof...(Outer);
        return transpose<Outer..., first, first + 2, first + 3, first + 1, first + 4>(cut, site);
      }(std::make_integer_sequence<int, X::rank - 3>());
      return reduction(norm(detail::viewed<shape>(merged), site), site);
    }
  }
  template <class... Given> constexpr auto operator()(const Given &...given) const {
    return detail::refuse_call(given...);
  }

private:
  LayerNorm<4 * Channels, Weight.element> norm{"norm"};
  Linear<4 * Channels, 2 * Channels, false, WeightOrder::out_in, Weight> reduction{"reduction"};
};

} // namespace kiln
