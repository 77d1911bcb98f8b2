// SPDX-License-Identifier: Apache-2.0
//
// An operand is a vector.
// expect: forward: matmul: rank too small; expected 2 or more, got f32[tokens 1..64, 8] and f32[8] [matmul_c2] (matmul_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> a, Tensor<f32, 8> b) const { return matmul(a, b); }
};
static_assert(parameters<M>() >= 0);
