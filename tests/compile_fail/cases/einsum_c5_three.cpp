// SPDX-License-Identifier: Apache-2.0
//
// There are three operands.
// expect: einsum: wrong number of operands; expected one or two, one for each list of the equation, got f32[8, 8] and f32[8, 8] and f32[8, 8] [einsum_c5]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8> x) const { return einsum<"ij,jk,kl->il">(x, x, x); }
};
static_assert(parameters<M>() >= 0);
