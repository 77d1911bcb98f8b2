// SPDX-License-Identifier: Apache-2.0
//
// The operand has three axes.
// expect: forward: einsum: wrong rank; expected a letter for each axis, got ij of f32[tokens 1..64, 8, 3] [einsum_c6] (einsum_c6.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 3> x) const { return einsum<"ij->ji">(x); }
};
static_assert(parameters<M>() >= 0);
