// SPDX-License-Identifier: Apache-2.0
//
// Vision Transformer (Dosovitskiy et al. 2020) under the names of its published checkpoints: an image in patches, a
// class token, learned positions, pre-norm blocks, and a head on the first row.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr double vit_epsilon = 1e-12;

/// A convolution whose stride is its extent: each patch, channel by channel, is a row of a linear layer.
template <std::int64_t Image, std::int64_t Patch, std::int64_t Width>
struct PatchProjection : kiln::Layer<PatchProjection<Image, Patch, Width>> {
  using kiln::Layer<PatchProjection>::Layer;
  static constexpr std::int64_t side = Image / Patch, elements = 3 * Patch * Patch;

  constexpr auto forward(const kiln::tensor auto &image) const {
    auto split = kiln::reshape<3, side, Patch, side, Patch>(image);
    auto patches = kiln::reshape<side * side, elements>(kiln::transpose<1, 3, 0, 2, 4>(split));
    auto weight = kiln::parameter<kiln::f32, Width, 3, Patch, Patch>(image, "weight");
    return kiln::linear(patches, kiln::reshape<Width, elements>(weight),
                        kiln::parameter<kiln::f32, Width>(image, "bias"));
  }
};

template <std::int64_t Image, std::int64_t Patch, std::int64_t Width>
struct VitEmbeddings : kiln::Layer<VitEmbeddings<Image, Patch, Width>> {
  using kiln::Layer<VitEmbeddings>::Layer;
  PatchProjection<Image, Patch, Width> projection{"patch_embeddings.projection"};

  constexpr auto forward(const kiln::tensor auto &image) const {
    constexpr std::int64_t rows = (Image / Patch) * (Image / Patch) + 1;
    auto first = kiln::parameter<kiln::f32, 1, 1, Width>(image, "cls_token");
    auto positions = kiln::parameter<kiln::f32, 1, rows, Width>(image, "position_embeddings");
    auto x = kiln::concat<0>(kiln::reshape<1, Width>(first), projection(image));
    return x + kiln::reshape<rows, Width>(positions);
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
  VitEmbeddings<Image, Patch, Width> embeddings{"vit.embeddings"};
  kiln::Stack<Layers, VitLayer<Width, Heads>> layer{"vit.encoder.layer"};
  kiln::LayerNorm<Width> norm{"vit.layernorm", vit_epsilon};
  kiln::Linear<Width, Classes> classifier{"classifier"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 3, Image, Image> image) const {
    auto first = kiln::slice<0, 0, 1>(layer(embeddings(image)));
    return kiln::reshape<Classes>(classifier(norm(first)));
  }
};

using VitBase = Vit<12, 768, 12, 224, 16, 1000>;

} // namespace specs
