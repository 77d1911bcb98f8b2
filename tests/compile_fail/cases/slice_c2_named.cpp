// SPDX-License-Identifier: Apache-2.0
//
// A slice of fixed size may exceed a dynamic dimension.
// expect: forward: slice: range outside the operand's dimension; expected tokens 1..64, got 0 + 2 [slice_c2] (slice_c2_named.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return slice<0, 0, 2>(x); }
};
static_assert(parameters<M>() >= 0);
