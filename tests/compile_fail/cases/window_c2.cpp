// SPDX-License-Identifier: Apache-2.0
//
// A kernel that the image does not hold.
// expect: forward: a window requires a padded image that holds it [window_c2]: got f32[4, 8, 3] (window_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 8, 3> x) const { return conv2d(x, parameter<f32, 4, 3, 5, 5>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
