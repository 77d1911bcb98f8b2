// SPDX-License-Identifier: Apache-2.0
//
// The grid has integers.
// expect: forward: grid_sample: wrong element types; expected one floating-point type, got f32[tokens 1..64, 8, 8, 3] and i32[tokens 1..64, 4, 4, 2] [grid_sample_c2] (grid_sample_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 8, 3> x, Tensor<i32, T, 4, 4, 2> grid) const { return grid_sample(x, grid); }
};
static_assert(parameters<M>() >= 0);
