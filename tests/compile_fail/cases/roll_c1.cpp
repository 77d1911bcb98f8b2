// SPDX-License-Identifier: Apache-2.0
//
// The axis is beyond the rank.
// expect: forward: roll: axis out of range; expected one within the rank, got axis 2 of f32[tokens 1..64, 8] [roll_c1] (roll_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return roll<2, 3>(x); }
};
static_assert(parameters<M>() >= 0);
