// SPDX-License-Identifier: Apache-2.0
//
// Both choices are numbers, so the result has no type.
// expect: forward: where: both choices are numbers; expected a tensor, or kiln::cast of the condition for 1 and 0, got numbers [where_c2] (where_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return where(x > 0, 1.0, 0.0); }
};
static_assert(parameters<M>() >= 0);
