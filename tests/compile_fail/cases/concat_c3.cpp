// SPDX-License-Identifier: Apache-2.0
//
// The axis is outside the rank.
// expect: forward: concat: axis out of range; expected one within the rank, got axis 2 of f32[tokens 1..64, 8] [concat_c3]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return concat<2>(x, x); }
};
static_assert(parameters<M>() >= 0);
