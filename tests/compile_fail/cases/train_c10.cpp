// SPDX-License-Identifier: Apache-2.0
//
// The layers of a stack have one name, h.{}; a pattern for one layer matches nothing.
// expect: frozen or without_decay: pattern matches no parameter; expected a parameter for each pattern, got h.0.fc.weight; nearest: h.{}.fc.weight [train_c10]
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
    return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{}).frozen({"head.*", "h.0.fc.weight"})};
  }
};
static_assert(parameters<M>() >= 0);
