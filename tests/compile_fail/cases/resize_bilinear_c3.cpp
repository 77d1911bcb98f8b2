// SPDX-License-Identifier: Apache-2.0
//
// The image has integers.
// expect: forward: resize_bilinear: wrong element type; expected a floating-point one, got i32[8, 8, 3] [resize_bilinear_c3] (resize_bilinear_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, 8, 8, 3> x) const { return resize_bilinear<4>(x); }
};
static_assert(parameters<M>() >= 0);
