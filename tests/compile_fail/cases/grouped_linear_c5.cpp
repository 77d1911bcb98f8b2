// SPDX-License-Identifier: Apache-2.0
//
// The weights are [in, out].
// expect: forward: grouped_linear: wrong input width; expected 6, got 8 [grouped_linear_c5] (grouped_linear_c5.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> ends) const {
    return grouped_linear(x, parameter<f32, 24, 6>(x, "w"), ends);
  }
};
static_assert(parameters<M>() >= 0);
