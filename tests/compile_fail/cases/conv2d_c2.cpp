// SPDX-License-Identifier: Apache-2.0
//
// A weight of rank 2.
// expect: forward: conv2d requires a weight [outputs, channels / groups, kernel height, kernel width] of fixed extents [conv2d_c2]: got f32[4, 3] (conv2d_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const { return conv2d(x, parameter<f32, 4, 3>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
