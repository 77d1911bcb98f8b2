// SPDX-License-Identifier: Apache-2.0
//
// There are more patterns than a list holds.
// expect: frozen or without_decay: too many patterns; expected at most 16, got 17 [train_c11]
#include "case.h"
using namespace kiln;

struct Inner : Layer {
  using Layer::Layer;
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(const tensor auto &x) const { return fc(x); }
};
struct M : Model {
  Stack<2, Inner> h{"h"};
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(h(x)), x); }
  static constexpr auto entries() {
    return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{})
                          .frozen({"*a", "*b", "*c", "*d", "*e", "*f", "*g", "*h", "*i", "*j", "*k", "*l", "*m", "*n",
                                   "*o", "*p", "head.*"})};
  }
};
static_assert(parameters<M>() >= 0);
