// SPDX-License-Identifier: Apache-2.0
//
// The stride is 0.
// expect: forward: window: invalid stride, dilation or padding; expected a stride and a dilation of at least 1 and a padding of at least 0, got stride 0, dilation 1, padding 0 [window_c1] (window_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const {
    return conv2d<Conv2dOptions{.stride = 0}>(x, parameter<f32, 4, 3, 3, 3>(x, "w"));
  }
};
static_assert(parameters<M>() >= 0);
