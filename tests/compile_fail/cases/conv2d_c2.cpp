// SPDX-License-Identifier: Apache-2.0
//
// The weight has rank 2.
// expect: forward: conv2d: invalid weight; expected [outputs, channels / groups, kernel height, kernel width] of static dimensions, got f32[4, 3] [conv2d_c2] (conv2d_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const { return conv2d(x, parameter<f32, 4, 3>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
