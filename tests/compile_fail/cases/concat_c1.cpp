// SPDX-License-Identifier: Apache-2.0
//
// Two ranks.
// expect: forward: concat requires operands of one element type and rank [concat_c1]: got f32[tokens 1..64, 8] and f32[tokens 1..64]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, T> y) const { return concat<0>(x, y); }
};
static_assert(parameters<M>() >= 0);
