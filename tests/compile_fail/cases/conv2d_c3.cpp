// SPDX-License-Identifier: Apache-2.0
//
// Channels first.
// expect: forward: conv2d requires as many channels as the weight's, times the groups [conv2d_c3]: got 8, expected 3 (conv2d_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, B, 3, 8, 8> x) const { return conv2d(x, parameter<f32, 4, 3, 3, 3>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
