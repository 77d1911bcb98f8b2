// SPDX-License-Identifier: Apache-2.0
//
// The image has integers.
// expect: forward: pool: wrong element type; expected a floating-point one, got i32[8, 8, 3] [pool2d_c2] (pool2d_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, 8, 8, 3> x) const { return max_pool2d<2>(x); }
};
static_assert(parameters<M>() >= 0);
