// SPDX-License-Identifier: Apache-2.0
//
// The number of heads is 0.
// expect: forward: rotary: width of the heads is not even; expected a multiple of 2, got 4 [rotary_c1] (rotary_c1_heads.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 4> x) const { return rotary<0>(x, sinusoidal<4>(positions<0>(x))); }
};
static_assert(parameters<M>() >= 0);
