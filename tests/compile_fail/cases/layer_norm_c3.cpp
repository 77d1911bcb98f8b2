// SPDX-License-Identifier: Apache-2.0
//
// The epsilon is 0.
// expect: norm: layer_norm: epsilon is not positive; expected one above 0, got 0.000000 [layer_norm_c3] (layer_norm_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  LayerNorm<8> norm{"norm", 0};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return norm(x); }
};
static_assert(parameters<M>() >= 0);
