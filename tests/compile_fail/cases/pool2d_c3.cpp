// SPDX-License-Identifier: Apache-2.0
//
// A window all of padding.
// expect: forward: a pool requires a padding of at most half its kernel [pool2d_c3]: got 2, expected at most half of 3 by 3 (pool2d_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const { return max_pool2d<3, Pool2dOptions{.padding = 2}>(x); }
};
static_assert(parameters<M>() >= 0);
