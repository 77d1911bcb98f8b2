// SPDX-License-Identifier: Apache-2.0
//
// A stride that would begin at another row in each call.
// expect: forward: causal_conv1d: the stride does not divide the number of steps; expected a multiple of 2, got tokens 1..64 [causal_conv1d_c3] (causal_conv1d_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 6> x, Tensor<f32, 6, 6, 3> w) const {
    return causal_conv1d<Conv1dOptions{.stride = 2}>(x, w);
  }
};
static_assert(parameters<M>() >= 0);
