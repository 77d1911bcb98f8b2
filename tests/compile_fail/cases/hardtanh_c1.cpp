// SPDX-License-Identifier: Apache-2.0
//
// The bounds are equal.
// expect: forward: hardtanh: lower bound not below the upper one; expected 2.000000, got 2.000000 [hardtanh_c1] (hardtanh_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return hardtanh(x, 2, 2); }
};
static_assert(parameters<M>() >= 0);
