// SPDX-License-Identifier: Apache-2.0
//
// An image has three axes at least.
// expect: forward: unfold: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more, got f32[tokens 1..64, 8] [unfold_c1] (unfold_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return unfold<1>(x); }
};
static_assert(parameters<M>() >= 0);
