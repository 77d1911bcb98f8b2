// SPDX-License-Identifier: Apache-2.0
//
// The image has no channels.
// expect: forward: conv2d: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more, got f32[8, 8] [conv2d_c1] (conv2d_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8> x) const { return conv2d(x, parameter<f32, 4, 3, 3, 3>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
