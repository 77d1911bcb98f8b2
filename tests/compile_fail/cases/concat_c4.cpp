// SPDX-License-Identifier: Apache-2.0
//
// The sum of two dynamic dimensions is no supported extent.
// expect: forward: concat: dimensions of the axis have no sum; expected offset + factor * s0 * s1, got f32[2, 8] and f32[tokens 1..64, 8] and f32[source 1..128, 8] [concat_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 2, 8> x, Tensor<f32, T, 8> y, Tensor<f32, S, 8> z) const {
    return concat<0>(x, y, z);
  }
};
static_assert(parameters<M>() >= 0);
