// SPDX-License-Identifier: Apache-2.0
//
// The lower bound exceeds the upper bound.
// expect: forward: clamp: lower bound above the upper one; expected 1.000000, got 2.000000 [clamp_c1] (clamp_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return clamp(x, 2, 1); }
};
static_assert(parameters<M>() >= 0);
