// SPDX-License-Identifier: Apache-2.0
//
// The training entries of the model of fashion_vit.h: a step on 128 images, and the entry for evaluation.
#pragma once

#include "fashion_vit.h"

namespace fashion {

inline constexpr kiln::Dim batch = 128;

template <std::int64_t Classes> struct Training : Small<Classes> {
  constexpr auto loss(kiln::Tensor<kiln::f32, batch, side, side> images, kiln::Tensor<kiln::i32, batch> labels) const {
    return kiln::cross_entropy<kiln::CrossEntropyOptions{.label_smoothing = 0.05}>(
        Small<Classes>::template logits<batch>(images), labels);
  }

  static constexpr auto step() {
    return kiln::train("train", &Training::loss, {"images", "labels"}, {"loss"},
                       kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.05})
        .clipped(1)
        .without_decay({"*bias", "*norm*", "class_token"});
  }
  static constexpr auto measured() { return kiln::entry("forward", &Training::forward, {"images"}, {"logits"}); }
  static constexpr auto entries() { return std::tuple{step(), measured()}; }
};

/// Trains only the head: there is no gradient and no optimiser state for the layers before it.
template <std::int64_t Classes> struct HeadTraining : Training<Classes> {
  static constexpr auto entries() {
    return std::tuple{
        Training<Classes>::step().frozen({"projection*", "class_token", "positions", "blocks*", "last*", "norm*"}),
        Training<Classes>::measured()};
  }
};

} // namespace fashion
