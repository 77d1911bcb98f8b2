// SPDX-License-Identifier: Apache-2.0
//
// The model of fashion_vit.h as it is trained: a step on 128 pictures, and the entry that is measured.
#include "fashion_vit.h"
#include <kiln/generator.h>

struct FashionVitTraining : fashion::Trained {
  static constexpr kiln::Dim batch = 128;

  constexpr auto loss(kiln::Tensor<kiln::f32, batch, fashion::side, fashion::side> images,
                      kiln::Tensor<kiln::i32, batch> labels) const {
    return kiln::cross_entropy<kiln::CrossEntropyOptions{.label_smoothing = 0.05}>(
        classify<batch>(last(blocks(embed<batch>(images)))), labels);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &FashionVitTraining::loss, {"images", "labels"}, {"loss"},
                                  kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.05})
                          .clipped(1)
                          .without_decay({"*bias", "*norm*", "class_token"}),
                      kiln::entry("forward", &FashionVitTraining::forward, {"images"}, {"logits"})};
  }
};

KILN_MODEL(fashion_vit_train, FashionVitTraining)
