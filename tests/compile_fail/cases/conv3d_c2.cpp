// SPDX-License-Identifier: Apache-2.0
//
// The groups do not divide the outputs.
// expect: forward: conv3d: wrong channels or outputs; expected the weight's channels times the groups, and outputs that the groups divide, got f32[4, 5, 6, 4] and f32[7, 2, 2, 2, 2] [conv3d_c2] (conv3d_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 5, 6, 4> x, Tensor<f32, 7, 2, 2, 2, 2> w) const {
    return conv3d<Conv3dOptions{.groups = 2}>(x, w);
  }
};
static_assert(parameters<M>() >= 0);
