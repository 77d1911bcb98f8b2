// SPDX-License-Identifier: Apache-2.0
//
// The weight is that of an image.
// expect: forward: conv_transpose1d: wrong rank of the signal or the weight; expected [..., steps, channels] and [channels, outputs / groups, kernel], got f32[4, 6] and f32[6, 8, 1, 3] [conv_transpose1d_c1] (conv_transpose1d_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 6> x, Tensor<f32, 6, 8, 1, 3> w) const { return conv_transpose1d(x, w); }
};
static_assert(parameters<M>() >= 0);
