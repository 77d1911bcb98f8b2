// SPDX-License-Identifier: Apache-2.0
//
// The condition has numbers.
// expect: forward: where: wrong type of the condition; expected booleans, got f32[tokens 1..64, 8] [where_c1] (where_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return where(x, x, 0); }
};
static_assert(parameters<M>() >= 0);
