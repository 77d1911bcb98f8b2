// SPDX-License-Identifier: Apache-2.0
//
// The other axis has another extent.
// expect: forward: scatter_add: shapes do not match; expected an index for each element, and equal dimensions on other axes, got f32[tokens 1..64, 8] and i32[3, 8] and f32[3, 8] [scatter_add_c3] (scatter_add_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3, 8> i, Tensor<f32, 3, 8> y) const { return scatter_add(x, i, y); }
};
static_assert(parameters<M>() >= 0);
