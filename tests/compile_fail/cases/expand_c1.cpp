// SPDX-License-Identifier: Apache-2.0
//
// The expanded dimension is not 1.
// expect: forward: expand: shape does not broadcast to the result's; expected [tokens 1..64, 8], got [4] [expand_c1] (expand_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 4>, Tensor<f32, 4> x) const { return expand<T, 8>(x); }
};
static_assert(parameters<M>() >= 0);
