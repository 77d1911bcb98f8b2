// SPDX-License-Identifier: Apache-2.0
//
// There are four rows and three indices.
// expect: forward: index_add: shapes do not match; expected rows of the first operand, one for each index, got f32[tokens 1..64, 8] and i32[3] and f32[4, 8] [index_add_c3] (index_add_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> i, Tensor<f32, 4, 8> y) const { return index_add(x, i, y); }
};
static_assert(parameters<M>() >= 0);
