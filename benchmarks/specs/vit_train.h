// SPDX-License-Identifier: Apache-2.0
//
// ViT-B/16 for training: a step on four images.
#pragma once

#include "models/vit/vit.h"

namespace specs {

struct VitTrain : kiln::Model {
  static constexpr VitShape shape{12, 768, 12, 224, 16, 1000};
  static constexpr std::int64_t batch = 4, side = 14, width = shape.width, classes = shape.classes;
  kiln::Conv2d<3, width, 16, kiln::Conv2dOptions{.stride = 16}> projection{
      "vit.embeddings.patch_embeddings.projection"};
  kiln::Stack<shape.layers, VitLayer<shape>> layer{"vit.encoder.layer"};
  kiln::LayerNorm<width> norm{"vit.layernorm", shape.epsilon};
  kiln::Linear<width, classes> classifier{"classifier"};

  constexpr auto loss(kiln::Tensor<kiln::f32, batch, 3, 224, 224> images, kiln::Tensor<kiln::i32, batch> labels) const {
    auto patches = kiln::reshape<batch, side * side, width>(projection(kiln::transpose<0, 2, 3, 1>(images)));
    auto token = kiln::parameter<kiln::f32, 1, 1, width>(images, "vit.embeddings.cls_token");
    auto positions =
        kiln::parameter<kiln::f32, 1, side * side + 1, width>(images, "vit.embeddings.position_embeddings");
    auto x = layer(kiln::concat<1>(kiln::expand<batch, 1, width>(token), patches) + positions);
    auto first = kiln::reshape<batch, width>(kiln::slice<1, 0, 1>(x));
    return kiln::cross_entropy(classifier(norm(first)), labels);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &VitTrain::loss, {"images", "labels"}, {"loss"}, kiln::AdamW{}),
                      kiln::entry("loss", &VitTrain::loss, {"images", "labels"}, {"loss"})};
  }
};

} // namespace specs
