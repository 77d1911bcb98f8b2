// SPDX-License-Identifier: Apache-2.0
//
// A scalar.
// expect: forward: linear requires an input of rank 1 or more [linear_c2]: got f32[] (linear_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32> x) const { return linear(x, parameter<f32, 1, 1>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
