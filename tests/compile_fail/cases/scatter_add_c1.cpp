// SPDX-License-Identifier: Apache-2.0
//
// The indices are numbers.
// expect: forward: scatter_add: wrong type of the indices; expected i32, got f32[tokens 1..64, 8] [scatter_add_c1] (scatter_add_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return scatter_add(x, x, x); }
};
static_assert(parameters<M>() >= 0);
