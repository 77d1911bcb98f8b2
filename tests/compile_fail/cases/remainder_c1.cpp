// SPDX-License-Identifier: Apache-2.0
//
// The operands are floats.
// expect: forward: remainder: wrong element type; expected i32, got f32[tokens 1..64] and f32[] [remainder_c1] (remainder_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return remainder(x, 2); }
};
static_assert(parameters<M>() >= 0);
