// SPDX-License-Identifier: Apache-2.0
//
// A pattern has a typing error.
// expect: frozen or without_decay: pattern matches no parameter; expected a parameter for each pattern, got haed.*; nearest: head.weight [train_c10]
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
    return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{.weight_decay = 0.1}).without_decay({"haed.*"})};
  }
};
static_assert(parameters<M>() >= 0);
