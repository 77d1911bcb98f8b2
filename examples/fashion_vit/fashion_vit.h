// SPDX-License-Identifier: Apache-2.0
//
// A small Vision Transformer (Dosovitskiy et al. 2020) for the grey images of Fashion-MNIST: patches of 4 x 4 pixels, a
// class token, learned positions, pre-norm blocks, a head on the class token.
#pragma once

#include "kiln/dsl.h"

namespace fashion {

inline constexpr kiln::Dim B{"batch", 1, 100};
inline constexpr std::int64_t side = 28, patch = 4, patches = (side / patch) * (side / patch);

template <std::int64_t Width, int Heads> struct Block : kiln::Layer<Block<Width, Heads>> {
  using kiln::Layer<Block>::Layer;
  kiln::LayerNorm<Width> norm1{"norm1"}, norm2{"norm2"};
  kiln::MultiHeadAttention<Width, Heads> self_attn{"self_attn"};
  kiln::Mlp<Width, 2 * Width> mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto y = x + self_attn(norm1(x));
    return y + mlp(norm2(y));
  }
  constexpr auto weights(const kiln::tensor auto &x) const { return self_attn.weights(norm1(x)); }
};

template <std::int64_t Layers, std::int64_t Width, int Heads, std::int64_t Classes> struct Vit : kiln::Model {
  kiln::Conv2d<1, Width, patch, kiln::Conv2dOptions{.stride = patch}> projection{"projection"};
  kiln::Stack<Layers - 1, Block<Width, Heads>> blocks{"blocks"};
  Block<Width, Heads> last{"last"};
  kiln::LayerNorm<Width> norm{"norm"};
  kiln::Linear<Width, Classes> head{"head"};

  template <kiln::Dim Batch> constexpr auto embed(kiln::Tensor<kiln::f32, Batch, side, side> image) const {
    auto tokens = kiln::reshape<Batch, patches, Width>(projection(kiln::reshape<Batch, side, side, 1>(image)));
    auto first = kiln::expand<Batch, 1, Width>(kiln::parameter<kiln::f32, Width>(image, "class_token"));
    return kiln::concat<1>(first, tokens) + kiln::parameter<kiln::f32, patches + 1, Width>(image, "positions");
  }
  template <kiln::Dim Batch> constexpr auto classify(const kiln::tensor auto &x) const {
    return head(norm(kiln::reshape<Batch, Width>(kiln::slice<1, 0, 1>(x))));
  }

  template <kiln::Dim Batch> constexpr auto logits(kiln::Tensor<kiln::f32, Batch, side, side> images) const {
    return classify<Batch>(last(blocks(embed<Batch>(images))));
  }

  constexpr auto forward(kiln::Tensor<kiln::f32, B, side, side> images) const { return logits<B>(images); }
  /// Also returns the attention of the class token to each patch, for each head of the last block.
  constexpr auto look(kiln::Tensor<kiln::f32, 1, side, side> image) const {
    auto x = blocks(embed<1>(image));
    auto logits = classify<1>(last(x)); // first, since a layer's parameters are named where its forward is called
    auto seen = kiln::slice<-2, 0, 1>(kiln::slice<-1, 1, patches>(last.weights(x)));
    return kiln::outputs(logits, kiln::reshape<Heads, side / patch, side / patch>(seen));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &Vit::forward, {"images"}, {"logits"}),
                      kiln::entry("look", &Vit::look, {"image"}, {"logits", "seen"})};
  }
};

template <std::int64_t Classes> using Small = Vit<4, 64, 4, Classes>;
using Trained = Small<10>;

} // namespace fashion
