// SPDX-License-Identifier: Apache-2.0
//
// The input is a scalar.
// expect: forward: linear: input without dimensions; expected rank 1 or more, got f32[] [linear_c2] (linear_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32> x) const { return linear(x, parameter<f32, 1, 1>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
