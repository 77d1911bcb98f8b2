// SPDX-License-Identifier: Apache-2.0
//
// The height may be odd.
// expect: forward: pixel_unshuffle: wrong rank of the image, or height or width that the factor does not divide; expected multiples of 2, got f32[tokens 1..64, 8, 3] [pixel_unshuffle_c1] (pixel_unshuffle_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 3> x) const { return pixel_unshuffle<2>(x); }
};
static_assert(parameters<M>() >= 0);
