// SPDX-License-Identifier: Apache-2.0
//
// The input has three dimensions.
// expect: forward: grouped_linear: wrong rank of the input; expected 2, got f32[tokens 1..64, 2, 8] [grouped_linear_c1] (grouped_linear_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 2, 8> x, Tensor<i32, 3> ends) const {
    return grouped_linear(x, parameter<f32, 6, 8>(x, "w"), ends);
  }
};
static_assert(parameters<M>() >= 0);
