// SPDX-License-Identifier: Apache-2.0
//
// The axis is beyond the rank.
// expect: forward: take_along_axis: axis out of range; expected one within the rank, got axis 1 of i32[tokens 1..64] [take_along_axis_c2] (take_along_axis_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> x) const { return take_along_axis<1>(x, x); }
};
static_assert(parameters<M>() >= 0);
