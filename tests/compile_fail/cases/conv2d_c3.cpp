// SPDX-License-Identifier: Apache-2.0
//
// The image has its channels first.
// expect: forward: conv2d: wrong number of channels; expected 3, got 8 [conv2d_c3] (conv2d_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, B, 3, 8, 8> x) const { return conv2d(x, parameter<f32, 4, 3, 3, 3>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
