// SPDX-License-Identifier: Apache-2.0
//
// The other axes have different extents.
// expect: forward: take_along_axis: different ranks or dimensions on other axes; expected equal ones, got f32[tokens 1..64, 8] and i32[3, 8] [take_along_axis_c3] (take_along_axis_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3, 8> i) const { return take_along_axis(x, i); }
};
static_assert(parameters<M>() >= 0);
