// SPDX-License-Identifier: Apache-2.0
//
// The ends are floats.
// expect: forward: grouped_linear: wrong ends; expected i32 of rank 1 with a static extent, got f32[3] [grouped_linear_c3] (grouped_linear_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 3> ends) const {
    return grouped_linear(x, parameter<f32, 6, 8>(x, "w"), ends);
  }
};
static_assert(parameters<M>() >= 0);
