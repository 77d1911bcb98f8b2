// SPDX-License-Identifier: Apache-2.0
//
// Pairs have axes, the positions have none.
// expect: forward: sinusoidal: wrong type or rank of the positions; expected i32 or f32 of rank 1 or more, and of 2 or more if pairs have axes, got i32[tokens 1..64] [sinusoidal_c1] (sinusoidal_c1_axes.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> n) const { return sinusoidal(n, axial_frequencies<8, 2>()); }
};
static_assert(parameters<M>() >= 0);
