// SPDX-License-Identifier: Apache-2.0
//
// The bias has the size of the input channels.
// expect: forward: conv2d: wrong bias shape; expected [4], got [3] [conv2d_c5] (conv2d_c5.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const {
    return conv2d(x, parameter<f32, 4, 3, 3, 3>(x, "w"), parameter<f32, 3>(x, "b"));
  }
};
static_assert(parameters<M>() >= 0);
