// SPDX-License-Identifier: Apache-2.0
//
// Every kind of layer, and composite operations, in f16 and in bf16, with inputs and outputs of these types.
#pragma once

#include "kiln/dsl.h"
#include "kiln/windows.h"

namespace specs {

inline constexpr kiln::Dim half_steps{"steps", 2, 20};

template <kiln::ElementType E> struct HalfLayers : kiln::Layer<HalfLayers<E>> {
  using kiln::Layer<HalfLayers<E>>::Layer;
  static constexpr std::int64_t width = 12;
  using Rows = kiln::Tensor<E, half_steps, width>;
  using Image = kiln::Tensor<E, 4, 6, width>;

  kiln::Lstm<width, 6, kiln::RecurrentOptions{.layers = 2, .bidirectional = true, .weight = E}> lstm{"lstm"};
  kiln::DecoderBlock<width, 3, 20, kiln::BlockOptions{.norm = kiln::NormOrder::post, .weight = E}> block{"block"};
  kiln::AdditiveAttention<width, width, 7, E> additive{"additive"};
  kiln::RmsNorm<width, E> rms{"rms"};
  kiln::Conv2d<width, 10, kiln::Pair(3, 3), kiln::Conv2dOptions{.padding = 1}, true, E> conv{"conv"};
  kiln::BatchNorm2d<width, E> batch{"batch"};
  kiln::GroupNorm<3, width, E> group{"group"};
  kiln::SwinBlock<width, 3, 2, true, 16, E> swin{"swin"};
  kiln::PatchMerging<width, E> merging{"merging"};

  constexpr auto forward(const Rows &x) const {
    auto angles = kiln::cast<E>(kiln::sinusoidal<width / 3>(kiln::positions<0>(x)));
    auto mixed = block(kiln::rotary<3>(rms(x), angles), x);
    return std::tuple{lstm(x).outputs, mixed, additive(x, mixed), kiln::cumsum<0>(kiln::l2_normalize(x)),
                      kiln::log_softmax(kiln::attention_weights<3>(x, x, kiln::causal) * 4)};
  }
  constexpr auto forward(const Image &x) const {
    return std::tuple{kiln::max_pool2d<2>(kiln::relu(conv(batch(x)))), kiln::gelu(group(x)), merging(swin(x))};
  }
};

struct HalvesOfLayers : kiln::Model {
  HalfLayers<kiln::f16> half{"half"};
  HalfLayers<kiln::bf16> bfloat{"bfloat"};

  constexpr auto rows_half(HalfLayers<kiln::f16>::Rows x) const { return half(x); }
  constexpr auto rows_bfloat(HalfLayers<kiln::bf16>::Rows x) const { return bfloat(x); }
  constexpr auto image_half(HalfLayers<kiln::f16>::Image x) const { return half(x); }
  constexpr auto image_bfloat(HalfLayers<kiln::bf16>::Image x) const { return bfloat(x); }

  static constexpr auto entries() {
    using Self = HalvesOfLayers;
    using kiln::entry, kiln::Names;
    constexpr Names rows{"outputs", "mixed", "added", "sums", "logarithms"}, images{"pooled", "gated", "merged"};
    return std::tuple{entry("rows_half", &Self::rows_half, {"x"}, rows),
                      entry("rows_bfloat", &Self::rows_bfloat, {"x"}, rows),
                      entry("image_half", &Self::image_half, {"x"}, images),
                      entry("image_bfloat", &Self::image_bfloat, {"x"}, images)};
  }
};

} // namespace specs
