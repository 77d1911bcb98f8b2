// SPDX-License-Identifier: Apache-2.0
//
// The input has another width.
// expect: ln_f: layer_norm: wrong input width; expected 768, got 512 [layer_norm_c1] (layer_norm_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  LayerNorm<768> ln_f{"ln_f"};
  constexpr auto forward(Tensor<f32, T, 512> x) const { return ln_f(x); }
};
static_assert(parameters<M>() >= 0);
