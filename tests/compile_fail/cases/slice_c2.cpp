// SPDX-License-Identifier: Apache-2.0
//
// The slice exceeds the dimension.
// expect: forward: slice: range outside the operand's dimension; expected 8, got 6 + 4 [slice_c2] (slice_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return slice<-1, 6, 4>(x); }
};
static_assert(parameters<M>() >= 0);
