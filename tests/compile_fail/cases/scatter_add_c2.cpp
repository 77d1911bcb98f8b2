// SPDX-License-Identifier: Apache-2.0
//
// The axis is beyond the rank.
// expect: forward: scatter_add: axis out of range; expected one within the rank, got axis 2 of f32[tokens 1..64, 8] [scatter_add_c2] (scatter_add_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, T, 8> i) const { return scatter_add<2>(x, i, x); }
};
static_assert(parameters<M>() >= 0);
