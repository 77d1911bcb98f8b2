// SPDX-License-Identifier: Apache-2.0
//
// No operand has the letter.
// expect: forward: einsum: unknown letter in the result; expected letters of the operands, got ij,jk->iz [einsum_c4] (einsum_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 8, 3> y) const { return einsum<"ij,jk->iz">(x, y); }
};
static_assert(parameters<M>() >= 0);
