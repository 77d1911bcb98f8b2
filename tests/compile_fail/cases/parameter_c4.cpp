// SPDX-License-Identifier: Apache-2.0
//
// The weights of two layers have one name in the checkpoint.
// expect: mlp.fc: parameters and states require different names, with those of their layers before them [parameter_c4]: got
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
