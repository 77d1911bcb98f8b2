// SPDX-License-Identifier: Apache-2.0
//
// The axis may have fewer elements.
// expect: forward: last: more elements than the operand has; expected tokens 1..64, got 2 [last_c2] (last_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return last<0, 2>(x); }
};
static_assert(parameters<M>() >= 0);
