// SPDX-License-Identifier: Apache-2.0
//
// The axis is beyond the rank.
// expect: forward: index_add: axis out of range; expected one within the rank, got axis 2 of f32[tokens 1..64, 8] [index_add_c2] (index_add_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> i, Tensor<f32, 3, 8> y) const { return index_add<2>(x, i, y); }
};
static_assert(parameters<M>() >= 0);
