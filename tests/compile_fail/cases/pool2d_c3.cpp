// SPDX-License-Identifier: Apache-2.0
//
// A window may contain only padding.
// expect: forward: pool: padding above half of the kernel; expected at most half of 3 by 3, got 2 [pool2d_c3] (pool2d_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const { return max_pool2d<3, Pool2dOptions{.padding = 2}>(x); }
};
static_assert(parameters<M>() >= 0);
