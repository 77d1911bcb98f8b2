// SPDX-License-Identifier: Apache-2.0
//
// The weights of two layers have one name in the checkpoint.
// expect: mlp.fc: parameter or state: full name is used twice; expected different ones, got bias [parameter_c4]
#include "case.h"
using namespace kiln;
struct Mlp1 : Layer<Mlp1> {
  using Layer::Layer;
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(const tensor auto &x) const { return fc(x); }
};

struct M : Model {
  Mlp1 mlp{"mlp"};
  Linear<8, 8> fc{"mlp.fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(mlp(x)); }
};
static_assert(parameters<M>() >= 0);
