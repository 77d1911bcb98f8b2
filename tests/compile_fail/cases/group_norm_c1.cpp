// SPDX-License-Identifier: Apache-2.0
//
// The number of groups does not divide the channels.
// expect: forward: group_norm: wrong rank of the image, or channels that the groups do not divide; expected 4 groups of channels, got f32[4, 4, 6] [group_norm_c1] (group_norm_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 4, 6> x, Tensor<f32, 6> w) const { return group_norm<4>(x, w, w); }
};
static_assert(parameters<M>() >= 0);
