// SPDX-License-Identifier: Apache-2.0
//
// Half floats hold whole positions up to 2048 only.
// expect: forward: sinusoidal: wrong type or rank of the positions; expected i32 or f32 of rank 1 or more, and of 2 or more if pairs have axes, got f16[batch 1..8, tokens 1..64] [sinusoidal_c1] (sinusoidal_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f16, B, T> n) const { return sinusoidal<8>(n); }
};
static_assert(parameters<M>() >= 0);
