// SPDX-License-Identifier: Apache-2.0
//
// The weights are f16.
// expect: forward: grouped_linear: wrong element types; expected one floating-point type, got f32[tokens 1..64, 8] and f16[6, 8] [grouped_linear_c7] (grouped_linear_c7.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> ends) const {
    return grouped_linear(x, parameter<f16, 6, 8>(x, "w"), ends);
  }
};
static_assert(parameters<M>() >= 0);
