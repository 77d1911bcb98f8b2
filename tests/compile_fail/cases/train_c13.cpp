// SPDX-License-Identifier: Apache-2.0
//
// The optimiser has no weight decay.
// expect: without_decay: optimizer has no weight decay; expected one with a weight_decay above 0, got train [train_c13]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(x), x); }
  static constexpr auto entries() {
    return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{.momentum = 0.9}).without_decay({"*.bias"})};
  }
};
static_assert(parameters<M>() >= 0);
