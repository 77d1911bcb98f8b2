// SPDX-License-Identifier: Apache-2.0
//
// The axis is dynamic.
// expect: forward: roll: axis out of range or dynamic; expected one of a static dimension, got f32[tokens 1..64, 8] [roll_c1] (roll_c1.cpp:9)
#include "case.h"
#include "kiln/windows.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return roll<0, 3>(x); }
};
static_assert(parameters<M>() >= 0);
