// SPDX-License-Identifier: Apache-2.0
//
// Booleans are added.
// expect: forward: arithmetic or comparison: boolean operand; expected numbers, got boolean[tokens 1..64] and boolean[tokens 1..64] [broadcast_c3]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return less(x, 0) + less(x, 1); }
};
static_assert(parameters<M>() >= 0);
