// SPDX-License-Identifier: Apache-2.0
//
// The axis is beyond the result's rank.
// expect: forward: unsqueeze: axis out of range; expected one within the result's rank, got axis 3 of f32[tokens 1..64, 8] [unsqueeze_c1] (unsqueeze_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return unsqueeze<3>(x); }
};
static_assert(parameters<M>() >= 0);
