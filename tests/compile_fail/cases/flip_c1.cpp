// SPDX-License-Identifier: Apache-2.0
//
// The axis is dynamic.
// expect: forward: flip: axis out of range or dynamic; expected one of a static dimension, got f32[tokens 1..64] [flip_c1] (flip_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return flip<0>(x); }
};
static_assert(parameters<M>() >= 0);
