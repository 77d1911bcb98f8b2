// SPDX-License-Identifier: Apache-2.0
//
// The patterns match all parameters.
// expect: frozen: nothing remains to train; expected patterns that leave a parameter of the entry, got train [train_c12]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(x), x); }
  static constexpr auto entries() {
    return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{}).frozen({"*"})};
  }
};
static_assert(parameters<M>() >= 0);
