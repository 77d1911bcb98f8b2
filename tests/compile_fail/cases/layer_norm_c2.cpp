// SPDX-License-Identifier: Apache-2.0
//
// The bias has another width.
// expect: forward: layer_norm: wrong bias shape; expected [8], got [4] [layer_norm_c2] (layer_norm_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return layer_norm(x, parameter<f32, 8>(x, "w"), parameter<f32, 4>(x, "b"));
  }
};
static_assert(parameters<M>() >= 0);
