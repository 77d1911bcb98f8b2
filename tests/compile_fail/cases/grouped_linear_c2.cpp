// SPDX-License-Identifier: Apache-2.0
//
// The weight has a dimension for the groups.
// expect: forward: grouped_linear: wrong weight; expected rank 2 and static extents, got f32[3, 2, 8] [grouped_linear_c2] (grouped_linear_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> ends) const {
    return grouped_linear(x, parameter<f32, 3, 2, 8>(x, "w"), ends);
  }
};
static_assert(parameters<M>() >= 0);
