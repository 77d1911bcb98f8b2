// SPDX-License-Identifier: Apache-2.0
//
// The weight has the rank of an image convolution.
// expect: forward: conv1d: wrong rank of the signal or the weight; expected [..., steps, channels] and [outputs, channels / groups, kernel], got f32[tokens 1..64, 6] and f32[6, 6, 1, 3] [conv1d_c1] (conv1d_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 6> x, Tensor<f32, 6, 6, 1, 3> w) const { return conv1d(x, w); }
};
static_assert(parameters<M>() >= 0);
