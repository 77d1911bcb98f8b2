// SPDX-License-Identifier: Apache-2.0
//
// The values are half a row of integers.
// expect: forward: constant: value does not fit the element type; expected i32, got 0.500000 [constant_c2] (constant_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T, 2> x) const { return x + constant<i32, 2>(x, {1, 0.5}); }
};
static_assert(parameters<M>() >= 0);
