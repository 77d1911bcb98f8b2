// SPDX-License-Identifier: Apache-2.0
//
// The positions have rank 2.
// expect: forward: sinusoidal: wrong type or rank of the positions; expected i32 of rank 1, got i32[batch 1..8, tokens 1..64] [sinusoidal_c1] (sinusoidal_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, B, T> n) const { return sinusoidal<8>(n); }
};
static_assert(parameters<M>() >= 0);
