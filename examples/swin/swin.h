// SPDX-License-Identifier: Apache-2.0
//
// Swin (Liu et al. 2021): stages of blocks with attention within windows, every second one shifted by half a window;
// between stages 2 x 2 neighbours are merged.
#pragma once

#include "kiln/dsl.h"
#include "kiln/windows.h"

namespace swin {

struct Shape {
  std::int64_t image, width; // of the first stage
  std::int64_t depths[4];
  int heads[4];
  int stages = 4;
  std::int64_t window = 7, patch = 4, classes = 1000;
};

/// Two blocks, the second one shifted if the image is larger than a window.
template <std::int64_t Width, int Heads, std::int64_t Window, bool Shifts> struct Pair {
  kiln::SwinBlock<Width, Heads, Window, false> even{"even"};
  kiln::SwinBlock<Width, Heads, Window, Shifts> odd{"odd"};

  constexpr auto forward(const kiln::tensor auto &x) const { return odd(even(x)); }
};

template <Shape S, int Number> struct Stage : kiln::Layer<Stage<S, Number>> {
  using kiln::Layer<Stage>::Layer;
  static constexpr std::int64_t width = S.width << Number, side = S.image / S.patch >> Number;
  static_assert(S.depths[Number] % 2 == 0, "a stage has pairs of blocks");
  kiln::Stack<S.depths[Number] / 2, Pair<width, S.heads[Number], S.window, (side > S.window)>> pairs{"pairs"};
  kiln::PatchMerging<width> downsample{"downsample"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    if constexpr (Number + 1 < S.stages)
      return downsample(pairs(x));
    else
      return pairs(x);
  }
};

template <Shape S> struct Swin : kiln::Model {
  static constexpr kiln::Names inputs{"images"}, outputs{"logits", "features"};
  static constexpr kiln::Dim B{"batch", 1, 4};
  static constexpr std::int64_t side = S.image / S.patch, last_width = S.width << (S.stages - 1);
  kiln::Conv2d<3, S.width, S.patch, kiln::Conv2dOptions{.stride = S.patch}> projection{"patch_embed.proj"};
  kiln::LayerNorm<S.width> embedded{"patch_embed.norm"};
  Stage<S, 0> first{"layers.0"};
  Stage<S, 1> second{"layers.1"};
  Stage<S, 2> third{"layers.2"};
  Stage<S, 3> fourth{"layers.3"};
  kiln::LayerNorm<last_width> norm{"norm"};
  kiln::Linear<last_width, S.classes> head{"head"};

  constexpr auto stages(const kiln::tensor auto &x) const {
    if constexpr (S.stages == 2)
      return second(first(x));
    else
      return fourth(third(second(first(x))));
  }
  constexpr auto forward(kiln::Tensor<kiln::f32, B, 3, S.image, S.image> images) const {
    auto x = embedded(projection(kiln::transpose<0, 2, 3, 1>(images)));
    auto features = norm(stages(x));
    return kiln::outputs(head(kiln::mean<1>(kiln::mean<1>(features))), features);
  }
};

// Released shapes.
inline constexpr Shape tiny{224, 96, {2, 2, 6, 2}, {3, 6, 12, 24}};
inline constexpr Shape small{224, 96, {2, 2, 18, 2}, {3, 6, 12, 24}};
inline constexpr Shape base{224, 128, {2, 2, 18, 2}, {4, 8, 16, 32}};

/// A small shape of this kind, whose second stage is one window.
inline constexpr Shape two_stages{
    .image = 56, .width = 24, .depths = {4, 2}, .heads = {3, 6}, .stages = 2, .classes = 10};

static_assert(kiln::parameters<Swin<tiny>>() == 28'288'354);

} // namespace swin
