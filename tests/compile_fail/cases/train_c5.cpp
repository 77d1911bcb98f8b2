// SPDX-License-Identifier: Apache-2.0
//
// The clipping norm is negative.
// expect: clipping: norm is not positive; expected one above 0, got 0.000000 [train_c5]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(x), x); }
  static constexpr auto entries() { return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{}).clipped(0)}; }
};
static_assert(parameters<M>() >= 0);
