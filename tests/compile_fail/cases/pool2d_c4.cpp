// SPDX-License-Identifier: Apache-2.0
//
// The windows have different sizes.
// expect: forward: adaptive_avg_pool2d: image is dynamic or not divisible by the result; expected multiples of 3 by 3, got f32[8, 9, 3] [pool2d_c4] (pool2d_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 9, 3> x) const { return adaptive_avg_pool2d<3>(x); }
};
static_assert(parameters<M>() >= 0);
