// SPDX-License-Identifier: Apache-2.0
//
// The kernel is larger than the image.
// expect: forward: window: larger than the padded image; expected an image that holds it, got f32[4, 8, 3] [window_c2] (window_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 8, 3> x) const { return conv2d(x, parameter<f32, 4, 3, 5, 5>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
