// SPDX-License-Identifier: Apache-2.0
//
// The indices are numbers.
// expect: forward: take_along_axis: wrong type of the indices; expected i32, got f32[tokens 1..64] [take_along_axis_c1] (take_along_axis_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return take_along_axis(x, x); }
};
static_assert(parameters<M>() >= 0);
