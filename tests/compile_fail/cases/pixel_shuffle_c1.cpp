// SPDX-License-Identifier: Apache-2.0
//
// Six channels are no multiple of four.
// expect: forward: pixel_shuffle: wrong rank of the image, or channels that the square of the factor does not divide; expected a multiple of 2^2, got f32[tokens 1..64, 8, 6] [pixel_shuffle_c1] (pixel_shuffle_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 6> x) const { return pixel_shuffle<2>(x); }
};
static_assert(parameters<M>() >= 0);
