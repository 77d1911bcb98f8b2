// SPDX-License-Identifier: Apache-2.0
//
// The weight has another width.
// expect: forward: group_norm: wrong shape of the weight or the bias; expected [6], got f32[3] and f32[3] [group_norm_c3] (group_norm_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 4, 6> x, Tensor<f32, 3> w) const { return group_norm<2>(x, w, w); }
};
static_assert(parameters<M>() >= 0);
