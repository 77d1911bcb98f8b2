// SPDX-License-Identifier: Apache-2.0
//
// The activations are f16, the weights f32.
// expect: norm: rms_norm: wrong element types; expected one floating-point type, got f16[tokens 1..64, 8] and f32[8] [rms_norm_c3] (rms_norm_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  RmsNorm<8> norm{"norm"};
  constexpr auto forward(Tensor<f16, T, 8> x) const { return norm(x); }
};
static_assert(parameters<M>() >= 0);
