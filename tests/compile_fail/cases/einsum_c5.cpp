// SPDX-License-Identifier: Apache-2.0
//
// The equation has two operands.
// expect: forward: einsum: wrong number of operands; expected one or two, one for each list of the equation, got ij,jk->ik of 1 operand [einsum_c5] (einsum_c5.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return einsum<"ij,jk->ik">(x); }
};
static_assert(parameters<M>() >= 0);
