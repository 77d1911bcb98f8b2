// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling: every stride, padding, dilation and number of groups, sizes that are not multiples of a
// tile, images of dynamic height, and fused epilogues.
#include "dims.h"

struct Image : kiln::Model {
  using X = kiln::Tensor<kiln::f32, B, 9, 11, 6>;
  kiln::Conv2d<6, 50, 3, kiln::Conv2dOptions{.padding = 1}> same{"same"};
  kiln::Conv2d<6, 17, kiln::Pair(3, 2), kiln::Conv2dOptions{.stride = {2, 3}, .padding = {1, 0}}, false> strided{
      "strided"};
  kiln::Conv2d<6, 33, kiln::Pair(2, 3), kiln::Conv2dOptions{.stride = 2, .padding = {3, 2}, .dilation = {3, 2}}>
      dilated{"dilated"};
  kiln::Conv2d<6, 20, 1> pointwise{"pointwise"};
  kiln::Conv2d<6, 20, 1, kiln::Conv2dOptions{.stride = 2}> sparse{"sparse"};
  kiln::Conv2d<6, 15, 3, kiln::Conv2dOptions{.stride = {2, 1}, .padding = 1, .groups = 3}> grouped{"grouped"};
  kiln::Conv2d<6, 6, kiln::Pair(5, 3), kiln::Conv2dOptions{.padding = {2, 1}, .groups = 6}> depthwise{"depthwise"};
  kiln::Conv2d<6, 12, 3, kiln::Conv2dOptions{.groups = 6}, false> multiplied{"multiplied"};
  kiln::Conv2d<6, 31, kiln::Pair(3, 4), kiln::Conv2dOptions{.stride = {3, 4}}> patches{"patches"};
  kiln::Conv2d<6, 6, 3, kiln::Conv2dOptions{.padding = 1}, false> square{"square"};
  kiln::BatchNorm2d<6> norm{"norm", 1e-3}, shortcut{"shortcut"};

  constexpr auto convolution(X x) const {
    return kiln::outputs(same(x), strided(x), dilated(x), pointwise(x), sparse(x), patches(x));
  }
  constexpr auto groups(X x) const { return kiln::outputs(grouped(x), depthwise(x), multiplied(x)); }
  /// Dynamic height: with a stride only if it divides the height; rank 3 and two leading dimensions.
  constexpr auto run_time(kiln::Tensor<kiln::f32, T + 4, 7, 6> x, kiln::Tensor<kiln::f32, B, 2, 2 * T, 5, 6> y) const {
    return kiln::outputs(same(x), kiln::max_pool2d<3, kiln::Pool2dOptions{.stride = 1, .padding = 1}>(x),
                         kiln::avg_pool2d<2>(y));
  }
  /// A residual block: norms, an activation and a sum in the epilogues.
  constexpr auto block(X x) const { return kiln::relu(norm(square(x)) + shortcut(x)); }
  /// A running average: the batch statistics are used in training entries only.
  constexpr auto kept(X x) const {
    auto mean = kiln::mean<0>(kiln::mean<0>(kiln::mean<0>(x)));
    return x - kiln::running_average(kiln::parameter<kiln::f32, 6>(x, "kept"), mean, mean, 0.1);
  }
  static constexpr kiln::Pool2dOptions uneven{.stride = {2, 3}, .padding = {1, 0}};
  constexpr auto max_pools(X x) const {
    return kiln::outputs(kiln::max_pool2d<2>(x), kiln::max_pool2d<kiln::Pair(3, 2), uneven>(x));
  }
  constexpr auto avg_pools(X x) const {
    return kiln::outputs(kiln::avg_pool2d<kiln::Pair(3, 2), uneven>(x), kiln::adaptive_avg_pool2d<1>(x),
                         kiln::adaptive_avg_pool2d<kiln::Pair(3, 1)>(x));
  }

  constexpr auto resize(X x) const {
    return kiln::outputs(kiln::resize_bilinear<kiln::Pair(18, 22)>(x), kiln::resize_bilinear<kiln::Pair(4, 29)>(x),
                         kiln::resize_bilinear<1>(x), kiln::resize_bilinear<kiln::Pair(9, 11)>(x));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("convolution", &Image::convolution),
                      kiln::entry("groups", &Image::groups),
                      kiln::entry("run_time", &Image::run_time),
                      kiln::entry("block", &Image::block),
                      kiln::entry("kept", &Image::kept),
                      kiln::entry("max_pools", &Image::max_pools),
                      kiln::entry("avg_pools", &Image::avg_pools),
                      kiln::entry("resize", &Image::resize)};
  }
};

KILN_MODEL(ops_image, Image)
