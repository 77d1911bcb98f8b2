// SPDX-License-Identifier: Apache-2.0
//
// The axis is outside the rank.
// expect: forward: slice: axis out of range; expected one within the rank, got axis 2 of f32[tokens 1..64, 8] [slice_c1] (slice_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return slice<2, 0, 1>(x); }
};
static_assert(parameters<M>() >= 0);
