// SPDX-License-Identifier: Apache-2.0
//
// The epsilon is negative.
// expect: norm: rms_norm: epsilon is not positive; expected one above 0, got -1.000000 [rms_norm_c2] (rms_norm_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  RmsNorm<8> norm{"norm", -1};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return norm(x); }
};
static_assert(parameters<M>() >= 0);
