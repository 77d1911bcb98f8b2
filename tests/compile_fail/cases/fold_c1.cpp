// SPDX-License-Identifier: Apache-2.0
//
// An image of 4 by 4 has nine windows of 2 by 2.
// expect: forward: fold: wrong number of windows or of their elements; expected 9 windows of C * 4, got f32[tokens 1..64, 8, 12] [fold_c1] (fold_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 12> x) const { return fold<4, 4, 2>(x); }
};
static_assert(parameters<M>() >= 0);
