// SPDX-License-Identifier: Apache-2.0
//
// The sum of three dynamic dimensions is no supported extent.
// expect: forward: concat: dimensions of the axis have no sum; expected at most two terms, got f32[2, 8] and f32[tokens 1..64, 8] and f32[source 1..128, 8] and f32[batch 1..8, 8] [concat_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 2, 8> x, Tensor<f32, T, 8> y, Tensor<f32, S, 8> z, Tensor<f32, B, 8> w) const {
    return concat<0>(x, y, z, w);
  }
};
static_assert(parameters<M>() >= 0);
