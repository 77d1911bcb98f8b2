// SPDX-License-Identifier: Apache-2.0
//
// A run-time width that may be odd.
// expect: forward: a window requires an image extent that is fixed or a multiple of its stride [window_c3]: got tokens 1..64, expected a multiple of 2 (window_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, T, 3> x) const {
    return conv2d<Conv2dOptions{.stride = 2}>(x, parameter<f32, 4, 3, 1, 1>(x, "w"));
  }
};
static_assert(parameters<M>() >= 0);
