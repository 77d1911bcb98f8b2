// SPDX-License-Identifier: Apache-2.0
//
// Padding, of which a stream has none.
// expect: forward: causal_conv1d: invalid options; expected a stride and a dilation of at least 1, and no padding, got stride 1, dilation 1, padding 1 [causal_conv1d_c2] (causal_conv1d_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 6> x, Tensor<f32, 6, 6, 3> w) const {
    return causal_conv1d<Conv1dOptions{.padding = 1}>(x, w);
  }
};
static_assert(parameters<M>() >= 0);
