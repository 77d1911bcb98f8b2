// SPDX-License-Identifier: Apache-2.0
//
// The operands have different ranks.
// expect: forward: concat: different element types or ranks; expected one of each, got f32[tokens 1..64, 8] and f32[tokens 1..64] [concat_c1]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, T> y) const { return concat<0>(x, y); }
};
static_assert(parameters<M>() >= 0);
