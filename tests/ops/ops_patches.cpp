// SPDX-License-Identifier: Apache-2.0
// Parts of images, and images of another size.
#include "dims.h"

struct Patches : kiln::Model {
  using Image = kiln::Tensor<kiln::f32, B, T, 5, 4>;
  using Fixed = kiln::Tensor<kiln::f32, B, 6, 7, 3>;

  constexpr auto shuffles(kiln::Tensor<kiln::f32, B, T, 5, 18> x, kiln::Tensor<kiln::f32, B, 2 * T, 6, 5> y,
                          kiln::Tensor<kiln::i32, T, 2, 8> n) const {
    return kiln::outputs(kiln::pixel_shuffle<3>(x), kiln::pixel_unshuffle<2>(y), kiln::pixel_shuffle<2>(n),
                         kiln::pixel_unshuffle<2>(kiln::pixel_shuffle<2>(n)), kiln::pixel_shuffle<1>(x));
  }

  static constexpr kiln::UnfoldOptions spread{.stride = {1, 2}, .padding = {2, 3}, .dilation = {2, 1}};

  constexpr auto unfolds(Image x) const {
    return kiln::outputs(kiln::unfold<kiln::Pair(1, 2)>(x), kiln::unfold<3, kiln::UnfoldOptions{.padding = 1}>(x),
                         kiln::unfold<kiln::Pair(3, 4), spread>(x));
  }
  constexpr auto folds(kiln::Tensor<kiln::f32, B, 4 * T, 8> pairs, kiln::Tensor<kiln::f32, B, 5 * T, 18> overlapping,
                       kiln::Tensor<kiln::f32, B, 4 * T, 24> apart) const {
    return kiln::outputs(kiln::fold<T, 5, kiln::Pair(1, 2)>(pairs),
                         kiln::fold<T, 5, 3, kiln::UnfoldOptions{.padding = 1}>(overlapping),
                         kiln::fold<T, 5, kiln::Pair(3, 4), spread>(apart));
  }
  constexpr auto enlarged(Fixed x, kiln::Tensor<kiln::i32, T, 41, 2, 1> n) const {
    return kiln::outputs(kiln::resize_nearest<kiln::Pair(12, 21)>(x), kiln::resize_nearest<kiln::Pair(4, 9)>(x),
                         kiln::resize_nearest<kiln::Pair(6, 1)>(x), kiln::resize_nearest<kiln::Pair(1681, 3)>(n));
  }
  constexpr auto resizes(Fixed x) const {
    return kiln::outputs(kiln::resize_bicubic<kiln::Pair(13, 5)>(x), kiln::resize_bicubic<kiln::Pair(6, 20)>(x),
                         kiln::resize_bicubic<kiln::Pair(2, 9), kiln::antialias>(x),
                         kiln::resize_bilinear<kiln::Pair(4, 3), kiln::antialias>(x),
                         kiln::resize_bilinear<kiln::Pair(1, 8), kiln::antialias>(x));
  }
  /// Volumes.
  constexpr auto convolved(kiln::Tensor<kiln::f32, 2 * T, 5, 6, 4> x, kiln::Tensor<kiln::f32, 6, 2, 3, 2, 3> grouped,
                           kiln::Tensor<kiln::f32, 5, 4, 2, 3, 1> dilated, kiln::Tensor<kiln::f32, 5> bias) const {
    return kiln::outputs(
        kiln::conv3d<kiln::Conv3dOptions{.stride = {2, 1, 1}, .padding = {1, 0, 1}, .groups = 2}>(x, grouped),
        kiln::conv3d<kiln::Conv3dOptions{.padding = {2, 1, 0}, .dilation = {2, 1, 1}}>(x, dilated, bias));
  }
  constexpr auto pooled(kiln::Tensor<kiln::f32, 2 * T, 5, 6, 4> x) const {
    return kiln::outputs(kiln::max_pool3d<2>(x),
                         kiln::avg_pool3d<3, kiln::Pool3dOptions{.stride = {1, 2, 1}, .padding = 1}>(x));
  }
  constexpr auto samples(Fixed x, kiln::Tensor<kiln::f32, B, T, 5, 2> grid) const { return kiln::grid_sample(x, grid); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("shuffles", &Patches::shuffles),   kiln::entry("unfolds", &Patches::unfolds),
                      kiln::entry("folds", &Patches::folds),         kiln::entry("enlarged", &Patches::enlarged),
                      kiln::entry("resizes", &Patches::resizes),     kiln::entry("samples", &Patches::samples),
                      kiln::entry("convolved", &Patches::convolved), kiln::entry("pooled", &Patches::pooled)};
  }
};

KILN_MODEL(ops_patches, Patches)
