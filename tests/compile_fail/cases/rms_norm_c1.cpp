// SPDX-License-Identifier: Apache-2.0
//
// Another width.
// expect: norm: rms_norm requires the input width to equal the weight's [rms_norm_c1]: got 512, expected 768 (rms_norm_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  RmsNorm<768> norm{"norm"};
  constexpr auto forward(Tensor<f32, T, 512> x) const { return norm(x); }
};
static_assert(parameters<M>() >= 0);
