// SPDX-License-Identifier: Apache-2.0
//
// The groups share a bias.
// expect: forward: grouped_linear: wrong shape of the biases; expected [6], got [2] [grouped_linear_c6] (grouped_linear_c6.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> ends) const {
    return grouped_linear(x, parameter<f32, 6, 8>(x, "w"), ends, parameter<f32, 2>(x, "b"));
  }
};
static_assert(parameters<M>() >= 0);
