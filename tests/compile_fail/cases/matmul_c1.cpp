// SPDX-License-Identifier: Apache-2.0
//
// The inner dimensions differ.
// expect: forward: matmul: wrong inner dimension; expected 6, got 8 [matmul_c1] (matmul_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> a, Tensor<f32, 6, 4> b) const { return matmul(a, b); }
};
static_assert(parameters<M>() >= 0);
