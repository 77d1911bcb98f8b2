// SPDX-License-Identifier: Apache-2.0
//
// The indices have the wrong type.
// expect: forward: gather: wrong type of the indices; expected i32, got f32[3] [gather_c1] (gather_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 3> n) const { return gather(x, n); }
};
static_assert(parameters<M>() >= 0);
