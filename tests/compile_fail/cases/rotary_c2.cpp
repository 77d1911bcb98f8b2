// SPDX-License-Identifier: Apache-2.0
//
// The angles have the width of all heads, not of one.
// expect: forward: rotary: wrong shape of the angles; expected f32[tokens 1..64, 4], got f32[tokens 1..64, 8] [rotary_c2] (rotary_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return rotary<2>(x, sinusoidal<8>(positions<0>(x))); }
};
static_assert(parameters<M>() >= 0);
