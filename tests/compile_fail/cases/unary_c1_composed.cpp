// SPDX-License-Identifier: Apache-2.0
//
// The operand of a composed function has integers.
// expect: forward: elementwise function: wrong element type; expected a floating-point one, got i32[tokens 1..64] [unary_c1] (unary_c1_composed.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> x) const { return mish(x); }
};
static_assert(parameters<M>() >= 0);
