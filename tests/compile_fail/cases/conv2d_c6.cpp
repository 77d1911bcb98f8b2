// SPDX-License-Identifier: Apache-2.0
//
// The element types differ.
// expect: forward: conv2d: wrong element types; expected one floating-point type, got f32[8, 8, 3] and f16[4, 3, 3, 3] [conv2d_c6] (conv2d_c6.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const { return conv2d(x, parameter<f16, 4, 3, 3, 3>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
