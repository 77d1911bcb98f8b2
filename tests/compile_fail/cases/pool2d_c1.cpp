// SPDX-License-Identifier: Apache-2.0
//
// The image has no channels.
// expect: forward: pool: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more, got f32[8, 8] [pool2d_c1] (pool2d_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8> x) const { return max_pool2d<2>(x); }
};
static_assert(parameters<M>() >= 0);
