// SPDX-License-Identifier: Apache-2.0
//
// A point has two coordinates.
// expect: forward: grid_sample: shapes do not match; expected an image [B, H, W, C] of static height and width and a grid [B, h, w, 2], got f32[tokens 1..64, 8, 8, 3] and f32[tokens 1..64, 4, 4, 3] [grid_sample_c1] (grid_sample_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 8, 3> x, Tensor<f32, T, 4, 4, 3> grid) const { return grid_sample(x, grid); }
};
static_assert(parameters<M>() >= 0);
