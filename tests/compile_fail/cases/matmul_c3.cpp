// SPDX-License-Identifier: Apache-2.0
//
// The batch dimensions differ.
// expect: forward: matmul: leading dimensions do not broadcast; expected equal ones or 1, got f32[2, tokens 1..64, 8] and f32[3, 8, 4] [matmul_c3] (matmul_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 2, T, 8> a, Tensor<f32, 3, 8, 4> b) const { return matmul(a, b); }
};
static_assert(parameters<M>() >= 0);
