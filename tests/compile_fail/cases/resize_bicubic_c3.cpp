// SPDX-License-Identifier: Apache-2.0
//
// Integers are not interpolated.
// expect: forward: bicubic or antialiased resize: wrong element type; expected a floating-point one, got i32[8, 8, 3] [resize_bicubic_c3] (resize_bicubic_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, 8, 8, 3> x) const { return resize_bilinear<4, antialias>(x); }
};
static_assert(parameters<M>() >= 0);
