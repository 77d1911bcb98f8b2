// SPDX-License-Identifier: Apache-2.0
//
// The image has no channels.
// expect: forward: resize_bilinear: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more, got f32[8, 8] [resize_bilinear_c1] (resize_bilinear_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8> x) const { return resize_bilinear<4>(x); }
};
static_assert(parameters<M>() >= 0);
