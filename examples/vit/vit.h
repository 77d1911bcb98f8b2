// SPDX-License-Identifier: Apache-2.0
//
// Vision Transformer (Dosovitskiy et al. 2020) under the names of its published checkpoints: an image in patches, a
// class token, learned positions, pre-norm blocks, and a head on the first row; DeiT.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr double vit_epsilon = 1e-12;

/// Patches behind the tokens that the head reads: the class token, and of a distilled model one that learned from a
/// teacher.
template <std::int64_t Image, std::int64_t Patch, std::int64_t Width, bool Distilled>
struct VitEmbeddings : kiln::Layer<VitEmbeddings<Image, Patch, Width, Distilled>> {
  using kiln::Layer<VitEmbeddings>::Layer;
  static constexpr std::int64_t side = Image / Patch;
  kiln::Conv2d<3, Width, Patch, kiln::Conv2dOptions{.stride = Patch}> projection{"patch_embeddings.projection"};

  constexpr auto forward(const kiln::tensor auto &image) const {
    constexpr std::int64_t rows = side * side + (Distilled ? 2 : 1);
    auto token = [&](const char *name) {
      return kiln::reshape<1, Width>(kiln::parameter<kiln::f32, 1, 1, Width>(image, name));
    };
    auto positions = kiln::parameter<kiln::f32, 1, rows, Width>(image, "position_embeddings");
    auto patches = kiln::reshape<side * side, Width>(projection(kiln::transpose<1, 2, 0>(image)));
    return with_tokens(token, patches) + kiln::reshape<rows, Width>(positions);
  }

private:
  static constexpr auto with_tokens(const auto &token, const kiln::tensor auto &patches) {
    if constexpr (Distilled)
      return kiln::concat<0>(token("cls_token"), token("distillation_token"), patches);
    else
      return kiln::concat<0>(token("cls_token"), patches);
  }
};

template <std::int64_t Width, int Heads> struct VitLayer {
  kiln::LayerNorm<Width> before{"layernorm_before", vit_epsilon}, after{"layernorm_after", vit_epsilon};
  kiln::Linear<Width, Width> query{"attention.attention.query"}, key{"attention.attention.key"},
      value{"attention.attention.value"}, attended{"attention.output.dense"};
  kiln::Linear<Width, 4 * Width> intermediate{"intermediate.dense"};
  kiln::Linear<4 * Width, Width> output{"output.dense"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto n = before(x);
    auto y = x + attended(kiln::attention<Heads>(query(n), key(n), value(n)));
    return y + output(kiln::gelu(intermediate(after(y))));
  }
};

template <std::int64_t Layers, std::int64_t Width, int Heads, std::int64_t Image, std::int64_t Patch,
          std::int64_t Classes>
struct Vit : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"logits"};
  VitEmbeddings<Image, Patch, Width, false> embeddings{"vit.embeddings"};
  kiln::Stack<Layers, VitLayer<Width, Heads>> layer{"vit.encoder.layer"};
  kiln::LayerNorm<Width> norm{"vit.layernorm", vit_epsilon};
  kiln::Linear<Width, Classes> classifier{"classifier"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 3, Image, Image> image) const {
    auto first = kiln::slice<0, 0, 1>(layer(embeddings(image)));
    return kiln::reshape<Classes>(classifier(norm(first)));
  }
};

/// A student of a convolutional network (Touvron et al. 2021): a head for each of two tokens; the result is their mean.
template <std::int64_t Layers, std::int64_t Width, int Heads, std::int64_t Image, std::int64_t Patch,
          std::int64_t Classes>
struct Deit : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"logits"};
  VitEmbeddings<Image, Patch, Width, true> embeddings{"deit.embeddings"};
  kiln::Stack<Layers, VitLayer<Width, Heads>> layer{"deit.encoder.layer"};
  kiln::LayerNorm<Width> norm{"deit.layernorm", vit_epsilon};
  kiln::Linear<Width, Classes> cls_classifier{"cls_classifier"}, distillation_classifier{"distillation_classifier"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 3, Image, Image> image) const {
    auto tokens = norm(kiln::slice<0, 0, 2>(layer(embeddings(image))));
    auto first = kiln::slice<0, 0, 1>(tokens), second = kiln::slice<0, 1, 1>(tokens);
    return kiln::reshape<Classes>((cls_classifier(first) + distillation_classifier(second)) / 2);
  }
};

using DeitTiny = Deit<12, 192, 3, 224, 16, 1000>;
using DeitBase = Deit<12, 768, 12, 224, 16, 1000>;
using VitBase = Vit<12, 768, 12, 224, 16, 1000>;

} // namespace specs
