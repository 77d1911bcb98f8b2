// SPDX-License-Identifier: Apache-2.0
//
// CLIP (Radford et al. 2021) with the tensor names of its published checkpoints: a text encoder and an image encoder,
// whose vectors are similar for texts and pictures that match.
#pragma once

#include "kiln/dsl.h"

namespace clip {

/// The layers of one encoder.
struct Tower {
  std::int64_t layers, width;
  int heads;
  std::int64_t hidden;
  bool has_quick_gelu = true; // x * sigmoid(1.702 x) instead of gelu
};

struct Shape {
  Tower text, vision;
  std::int64_t vocabulary, positions;
  std::int64_t image, patch;
  std::int64_t joint;    // width of the vectors
  double epsilon = 1e-5; // last: clang 22 confuses members after a double in a template argument
};

template <Shape S, Tower T> struct Block {
  kiln::LayerNorm<T.width> before{"layer_norm1", S.epsilon}, between{"layer_norm2", S.epsilon};
  kiln::MultiHeadAttention<T.width, T.heads> attention{"self_attn"};
  kiln::Linear<T.width, T.hidden> fc1{"mlp.fc1"};
  kiln::Linear<T.hidden, T.width> fc2{"mlp.fc2"};

  constexpr auto forward(const kiln::tensor auto &x, const auto &options) const {
    auto y = x + attention(before(x), options);
    return y + fc2(activate(fc1(between(y))));
  }

private:
  static constexpr auto activate(const kiln::tensor auto &x) {
    if constexpr (T.has_quick_gelu)
      return x * kiln::sigmoid(x * 1.702);
    else
      return kiln::gelu(x);
  }
};

/// The text encoder. Its result is the row of the token that ends the text.
template <Shape S> struct Text : kiln::Layer<Text<S>> {
  using kiln::Layer<Text>::Layer;
  kiln::Embedding<S.vocabulary, S.text.width> token{"embeddings.token_embedding"};
  kiln::Embedding<S.positions, S.text.width> position{"embeddings.position_embedding"};
  kiln::Stack<S.text.layers, Block<S, S.text>> layers{"encoder.layers"};
  kiln::LayerNorm<S.text.width> norm{"final_layer_norm", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &tokens) const {
    auto x = token(tokens) + position(kiln::positions(tokens));
    return norm(kiln::last<0, 1>(layers(x, kiln::causal)));
  }
};

/// The image encoder. Its result is the row of the class token, which precedes the patches.
template <Shape S> struct Vision : kiln::Layer<Vision<S>> {
  using kiln::Layer<Vision>::Layer;
  static constexpr std::int64_t side = S.image / S.patch, width = S.vision.width;
  kiln::Conv2d<3, width, S.patch, kiln::Conv2dOptions{.stride = S.patch}, false> patches{"embeddings.patch_embedding"};
  kiln::Embedding<side * side + 1, width> position{"embeddings.position_embedding"};
  kiln::LayerNorm<width> first{"pre_layrnorm", S.epsilon}; // the spelling of the checkpoints
  kiln::Stack<S.vision.layers, Block<S, S.vision>> layers{"encoder.layers"};
  kiln::LayerNorm<width> norm{"post_layernorm", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &image) const {
    auto token = kiln::reshape<1, width>(kiln::parameter<kiln::f32, width>(image, "embeddings.class_embedding"));
    auto rows = kiln::reshape<side * side, width>(patches(kiln::transpose<1, 2, 0>(image)));
    auto x = first(kiln::concat<0>(token, rows) + position.weight(image));
    return norm(kiln::slice<0, 0, 1>(layers(x, kiln::AttentionOptions<>{})));
  }
};

/// The vectors have length 1, so their dot product is the cosine.
template <Shape S> struct Clip : kiln::Model {
  static constexpr kiln::Dim length{"tokens", 1, S.positions};
  Text<S> text_model{"text_model"};
  Vision<S> vision_model{"vision_model"};
  kiln::Linear<S.text.width, S.joint, false> text_projection{"text_projection"};
  kiln::Linear<S.vision.width, S.joint, false> visual_projection{"visual_projection"};

  constexpr auto text(kiln::Tensor<kiln::i32, length> tokens) const {
    return kiln::reshape<S.joint>(kiln::l2_normalize<-1>(text_projection(text_model(tokens))));
  }
  constexpr auto image(kiln::Tensor<kiln::f32, 3, S.image, S.image> pixels) const {
    return kiln::reshape<S.joint>(kiln::l2_normalize<-1>(visual_projection(vision_model(pixels))));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("text", &Clip::text, {"tokens"}, {"embedding"}),
                      kiln::entry("image", &Clip::image, {"pixels"}, {"embedding"})};
  }
};

} // namespace clip
