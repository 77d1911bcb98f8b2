// SPDX-License-Identifier: Apache-2.0
//
// The height is dynamic.
// expect: forward: resize_nearest: wrong rank or dynamic height or width of the image; expected [..., height, width, channels] of rank 3 or more, got f32[tokens 1..64, 8, 3] [resize_nearest_c1] (resize_nearest_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 3> x) const { return resize_nearest<4>(x); }
};
static_assert(parameters<M>() >= 0);
