// SPDX-License-Identifier: Apache-2.0
//
// No epsilon.
// expect: norm: layer_norm requires an epsilon above 0 [layer_norm_c3]: got 0.000000 (layer_norm_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  LayerNorm<8> norm{"norm", 0};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return norm(x); }
};
static_assert(parameters<M>() >= 0);
