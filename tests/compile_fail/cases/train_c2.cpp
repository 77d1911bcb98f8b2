// SPDX-License-Identifier: Apache-2.0
//
// The momentum is 1.
// expect: optimizer: momentum or beta out of range; expected [0, 1), got 1.000000 [train_c2]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(x), x); }
  static constexpr auto entries() { return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{.momentum = 1})}; }
};
static_assert(parameters<M>() >= 0);
