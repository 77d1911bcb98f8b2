// SPDX-License-Identifier: Apache-2.0
//
// The element types differ.
// expect: forward: matmul: wrong element types; expected one floating-point type, got f32[tokens 1..64, 8] and f16[8, 4] [matmul_c4] (matmul_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> a, Tensor<f16, 8, 4> b) const { return matmul(a, b); }
};
static_assert(parameters<M>() >= 0);
