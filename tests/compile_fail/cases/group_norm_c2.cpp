// SPDX-License-Identifier: Apache-2.0
//
// The epsilon is 0.
// expect: forward: group_norm: epsilon is not positive; expected one above 0, got 0.000000 [group_norm_c2] (group_norm_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 4, 6> x, Tensor<f32, 6> w) const { return group_norm<2>(x, w, w, 0); }
};
static_assert(parameters<M>() >= 0);
