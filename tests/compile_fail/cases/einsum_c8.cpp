// SPDX-License-Identifier: Apache-2.0
//
// Integers are not contracted.
// expect: forward: einsum: wrong element type; expected one floating-point type, or numbers for one operand, got i32[tokens 1..64, 8] and i32[8, 3] [einsum_c8] (einsum_c8.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T, 8> x, Tensor<i32, 8, 3> y) const { return einsum<"ij,jk->ik">(x, y); }
};
static_assert(parameters<M>() >= 0);
