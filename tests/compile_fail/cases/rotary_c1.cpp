// SPDX-License-Identifier: Apache-2.0
//
// The heads have three channels.
// expect: forward: rotary: width of the heads is not even; expected a multiple of 4, got 6 [rotary_c1] (rotary_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 6> x) const { return rotary<2>(x, sinusoidal<2>(positions<0>(x))); }
};
static_assert(parameters<M>() >= 0);
