// SPDX-License-Identifier: Apache-2.0
//
// The axis is outside the rank.
// expect: forward: gather: axis out of range; expected one within the rank, got axis 5 of f32[tokens 1..64, 8] [gather_c2] (gather_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> n) const { return gather<5>(x, n); }
};
static_assert(parameters<M>() >= 0);
