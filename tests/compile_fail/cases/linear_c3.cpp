// SPDX-License-Identifier: Apache-2.0
//
// The weight has rank 1.
// expect: forward: linear: wrong rank of the weight; expected 2, got f32[8] [linear_c3] (linear_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return linear(x, parameter<f32, 8>(x, "w")); }
};
static_assert(parameters<M>() >= 0);
