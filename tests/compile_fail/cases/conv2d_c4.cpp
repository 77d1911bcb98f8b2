// SPDX-License-Identifier: Apache-2.0
//
// The number of groups does not divide the number of outputs.
// expect: forward: conv2d: outputs are not divisible by the groups; expected a multiple of 2, got 5 [conv2d_c4] (conv2d_c4.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 6> x) const {
    return conv2d<Conv2dOptions{.groups = 2}>(x, parameter<f32, 5, 3, 3, 3>(x, "w"));
  }
};
static_assert(parameters<M>() >= 0);
