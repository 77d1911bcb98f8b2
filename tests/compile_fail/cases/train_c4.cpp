// SPDX-License-Identifier: Apache-2.0
//
// The weight decay is negative.
// expect: optimizer: negative weight decay; expected 0 or more, got -0.100000 [train_c4]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(x), x); }
  static constexpr auto entries() {
    return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, AdamW{.weight_decay = -0.1})};
  }
};
static_assert(parameters<M>() >= 0);
