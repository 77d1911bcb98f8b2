// SPDX-License-Identifier: Apache-2.0
//
// The operands are numbers.
// expect: forward: logic: wrong element type; expected booleans, got f32[tokens 1..64] and f32[tokens 1..64] [logic_c1] (logic_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return logical_and(x, x); }
};
static_assert(parameters<M>() >= 0);
