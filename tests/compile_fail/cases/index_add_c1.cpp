// SPDX-License-Identifier: Apache-2.0
//
// The indices have two axes.
// expect: forward: index_add: wrong type or rank of the indices; expected i32 of rank 1, got i32[3, 8] [index_add_c1] (index_add_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3, 8> i, Tensor<f32, 3, 8> y) const { return index_add(x, i, y); }
};
static_assert(parameters<M>() >= 0);
