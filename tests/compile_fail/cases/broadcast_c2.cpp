// SPDX-License-Identifier: Apache-2.0
//
// The operands have different element types.
// expect: forward: elementwise operation: different element types; expected one, got f32[tokens 1..64] and i32[tokens 1..64] [broadcast_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x, Tensor<i32, T> y) const { return x * y; }
};
static_assert(parameters<M>() >= 0);
