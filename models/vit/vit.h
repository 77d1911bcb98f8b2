// SPDX-License-Identifier: Apache-2.0
//
// Vision Transformer (Dosovitskiy et al. 2020) under the tensor names of its checkpoints: an image in patches, a class
// token, learned positions, pre-norm blocks, and a head on the first row; DeiT.
#pragma once

#include "kiln/dsl.h"

namespace specs {

struct VitShape {
  std::int64_t layers, width;
  int heads;
  std::int64_t image, patch, classes;
  std::int64_t channels = 3;
  std::int64_t hidden = 4 * width; // of the MLPs
  bool has_qkv_bias = true;        // biases of the query, key and value projections
  kiln::Activation activation = kiln::Activation::gelu;
  double epsilon = 1e-12; // last: clang 22 corrupts members after a double in a template argument
};

/// Embeds patches after the tokens that the heads read: the class token, and in a distilled model one trained by a
/// teacher.
template <VitShape S, bool Distilled> struct VitEmbeddings : kiln::Layer<VitEmbeddings<S, Distilled>> {
  using kiln::Layer<VitEmbeddings>::Layer;
  static constexpr std::int64_t side = S.image / S.patch;
  kiln::Conv2d<S.channels, S.width, S.patch, kiln::Conv2dOptions{.stride = S.patch}> projection{
      "patch_embeddings.projection"};

  constexpr auto forward(const kiln::tensor auto &image) const {
    constexpr std::int64_t rows = side * side + (Distilled ? 2 : 1);
    auto token = [&](const char *name) {
      return kiln::reshape<1, S.width>(kiln::parameter<kiln::f32, 1, 1, S.width>(image, name));
    };
    auto positions = kiln::parameter<kiln::f32, 1, rows, S.width>(image, "position_embeddings");
    auto patches = kiln::reshape<side * side, S.width>(projection(kiln::transpose<1, 2, 0>(image)));
    return with_tokens(token, patches) + kiln::reshape<rows, S.width>(positions);
  }

private:
  static constexpr auto with_tokens(const auto &token, const kiln::tensor auto &patches) {
    if constexpr (Distilled)
      return kiln::concat<0>(token("cls_token"), token("distillation_token"), patches);
    else
      return kiln::concat<0>(token("cls_token"), patches);
  }
};

template <VitShape S> struct VitLayer {
  kiln::LayerNorm<S.width> before{"layernorm_before", S.epsilon}, after{"layernorm_after", S.epsilon};
  kiln::Linear<S.width, S.width, S.has_qkv_bias> query{"attention.attention.query"}, key{"attention.attention.key"},
      value{"attention.attention.value"};
  kiln::Linear<S.width, S.width> attended{"attention.output.dense"};
  kiln::Linear<S.width, S.hidden> intermediate{"intermediate.dense"};
  kiln::Linear<S.hidden, S.width> output{"output.dense"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto n = before(x);
    auto y = x + attended(kiln::attention<S.heads>(query(n), key(n), value(n)));
    return y + output(kiln::activate<S.activation>(intermediate(after(y))));
  }
};

/// The layers under a name prefix, up to the norm: the rows that the heads read.
template <VitShape S, bool Distilled> struct VitEncoder : kiln::Layer<VitEncoder<S, Distilled>> {
  using kiln::Layer<VitEncoder>::Layer;
  VitEmbeddings<S, Distilled> embeddings{"embeddings"};
  kiln::Stack<S.layers, VitLayer<S>> layer{"encoder.layer"};
  kiln::LayerNorm<S.width> norm{"layernorm", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &image) const {
    return norm(kiln::slice<0, 0, Distilled ? 2 : 1>(layer(embeddings(image))));
  }
};

template <VitShape S> using VitImage = kiln::Tensor<kiln::f32, S.channels, S.image, S.image>;

template <VitShape S> struct Vit : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"logits"};
  VitEncoder<S, false> vit{"vit"};
  kiln::Linear<S.width, S.classes> classifier{"classifier"};

  constexpr auto forward(VitImage<S> image) const { return kiln::reshape<S.classes>(classifier(vit(image))); }
};

/// Returns the row of the class token, without a head.
template <VitShape S, bool Distilled> struct VitFeatures : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"features"};
  VitEncoder<S, Distilled> encoder{Distilled ? "deit" : "vit"};

  constexpr auto forward(VitImage<S> image) const {
    return kiln::reshape<S.width>(kiln::slice<0, 0, 1>(encoder(image)));
  }
};

/// A student of a convolutional network (Touvron et al. 2021): a head for each of two tokens; the result is their mean.
template <VitShape S> struct Deit : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"logits"};
  VitEncoder<S, true> deit{"deit"};
  kiln::Linear<S.width, S.classes> cls_classifier{"cls_classifier"}, distillation_classifier{"distillation_classifier"};

  constexpr auto forward(VitImage<S> image) const {
    auto tokens = deit(image);
    auto first = kiln::slice<0, 0, 1>(tokens), second = kiln::slice<0, 1, 1>(tokens);
    return kiln::reshape<S.classes>((cls_classifier(first) + distillation_classifier(second)) / 2);
  }
};

using DeitTiny = Deit<VitShape{12, 192, 3, 224, 16, 1000}>;
using DeitBase = Deit<VitShape{12, 768, 12, 224, 16, 1000}>;
using VitBase = Vit<VitShape{12, 768, 12, 224, 16, 1000}>;

} // namespace specs
