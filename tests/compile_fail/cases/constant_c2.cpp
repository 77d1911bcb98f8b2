// SPDX-License-Identifier: Apache-2.0
//
// Half a row of whole numbers.
// expect: forward: constant requires values that its element type holds [constant_c2]: got 0.500000, expected i32 (constant_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T, 2> x) const { return x + constant<i32, 2>(x, {1, 0.5}); }
};
static_assert(parameters<M>() >= 0);
