// SPDX-License-Identifier: Apache-2.0
//
// The height is dynamic.
// expect: forward: resize_bilinear: dynamic dimension of the image; expected static ones, got f32[tokens 1..64, 8, 3] [resize_bilinear_c2] (resize_bilinear_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 3> x) const { return resize_bilinear<4>(x); }
};
static_assert(parameters<M>() >= 0);
