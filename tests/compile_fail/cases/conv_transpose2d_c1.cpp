// SPDX-License-Identifier: Apache-2.0
//
// The weight has the layout of a convolution.
// expect: forward: conv_transpose2d: invalid image or weight; expected [..., height, width, channels] and [channels, outputs / groups, kernel height, kernel width] of static dimensions, got f32[4, 4, 6] and f32[8, 6, 3, 3] [conv_transpose2d_c1] (conv_transpose2d_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 4, 6> x, Tensor<f32, 8, 6, 3, 3> w) const { return conv_transpose2d(x, w); }
};
static_assert(parameters<M>() >= 0);
