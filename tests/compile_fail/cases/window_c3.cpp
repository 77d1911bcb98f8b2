// SPDX-License-Identifier: Apache-2.0
//
// The dynamic width may be odd.
// expect: forward: window: dynamic image dimension is not divisible by the stride; expected a multiple of 2, got tokens 1..64 [window_c3] (window_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, T, 3> x) const {
    return conv2d<Conv2dOptions{.stride = 2}>(x, parameter<f32, 4, 3, 1, 1>(x, "w"));
  }
};
static_assert(parameters<M>() >= 0);
