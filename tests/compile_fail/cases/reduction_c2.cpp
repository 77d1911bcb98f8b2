// SPDX-License-Identifier: Apache-2.0
//
// The operand of a mean has integers.
// expect: forward: mean: wrong element type; expected a floating-point one, got i32[tokens 1..64] [reduction_c2] (reduction_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> x) const { return mean(x); }
};
static_assert(parameters<M>() >= 0);
