// SPDX-License-Identifier: Apache-2.0
//
// The weight is that of an image.
// expect: forward: conv3d: invalid volume or weight; expected [..., depth, height, width, channels] and [outputs, channels / groups, kernel depth, kernel height, kernel width] of static dimensions, got f32[4, 5, 6, 3] and f32[8, 3, 2, 2] [conv3d_c1] (conv3d_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 5, 6, 3> x, Tensor<f32, 8, 3, 2, 2> w) const { return conv3d(x, w); }
};
static_assert(parameters<M>() >= 0);
