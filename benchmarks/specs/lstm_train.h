// SPDX-License-Identifier: Apache-2.0
//
// An LSTM layer for training: backpropagation through 128 steps of eight sequences; the loss is the mean square of its
// outputs.
#pragma once

#include "kiln/dsl.h"

namespace specs {

struct LstmTrain : kiln::Model {
  static constexpr std::int64_t steps = 128, batch = 8, width = 256;
  kiln::Lstm<width, width> lstm{"lstm"};

  constexpr auto loss(kiln::Tensor<kiln::f32, steps, batch, width> x) const {
    auto [y, last] = lstm(x);
    return kiln::mse(y, kiln::zeros<kiln::f32, steps, batch, width>(x));
  }
  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &LstmTrain::loss, {"x"}, {"loss"}, kiln::AdamW{}),
                      kiln::entry("loss", &LstmTrain::loss, {"x"}, {"loss"})};
  }
};

} // namespace specs
