// SPDX-License-Identifier: Apache-2.0
//
// The size of a slice is a dynamic dimension of no input or state.
// expect: forward: named dimension: in no input or state; expected one that has it, got rows [dim_c9] (dim_c9.cpp:9)
#include "case.h"
using namespace kiln;
constexpr Dim rows{"rows", 1, 8};
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8> x) const { return slice<0, 0, rows>(x); }
};
static_assert(parameters<M>() >= 0);
