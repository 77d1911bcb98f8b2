// SPDX-License-Identifier: Apache-2.0
//
// The number of groups is not known.
// expect: forward: grouped_linear: wrong ends; expected i32 of rank 1 with a static extent, got i32[tokens 1..64] [grouped_linear_c3] (grouped_linear_c3_dynamic.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, T> ends) const {
    return grouped_linear(x, parameter<f32, 6, 8>(x, "w"), ends);
  }
};
static_assert(parameters<M>() >= 0);
