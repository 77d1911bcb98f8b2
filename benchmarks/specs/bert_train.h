// SPDX-License-Identifier: Apache-2.0
//
// BERT-base for training: the loss is the mean square of its hidden states, so the gradients pass through all of it.
#pragma once

#include "models/bert/bert.h"

namespace specs {

struct BertTrain : kiln::Model, BertRows<bert_base> {
  static constexpr std::int64_t batch = 8, tokens = 128;
  using Ids = kiln::Tensor<kiln::i32, batch, tokens>;

  constexpr auto loss(Ids ids, Ids segments, kiln::Tensor<kiln::i32, batch> lengths) const {
    auto hidden = this->rows(lengths, ids, segments);
    return kiln::mse(hidden, kiln::zeros<kiln::f32, batch, tokens, 768>(ids));
  }
  static constexpr auto entries() {
    return std::tuple{
        kiln::train("train", &BertTrain::loss, {"tokens", "segments", "lengths"}, {"loss"}, kiln::AdamW{}),
        kiln::entry("loss", &BertTrain::loss, {"tokens", "segments", "lengths"}, {"loss"})};
  }
};

} // namespace specs
