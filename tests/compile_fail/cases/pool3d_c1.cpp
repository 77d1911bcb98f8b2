// SPDX-License-Identifier: Apache-2.0
//
// An image is no volume.
// expect: forward: pool: wrong rank or dynamic channels of the volume; expected [..., depth, height, width, channels] of rank 4 or more, got f32[5, 6, 4] [pool3d_c1] (pool3d_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 5, 6, 4> x) const { return max_pool3d<2>(x); }
};
static_assert(parameters<M>() >= 0);
