// SPDX-License-Identifier: Apache-2.0
//
// The operand is boolean.
// expect: forward: reduction: wrong element type; expected numbers, got boolean[tokens 1..64] [reduction_c3] (reduction_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return sum(less(x, 0)); }
};
static_assert(parameters<M>() >= 0);
