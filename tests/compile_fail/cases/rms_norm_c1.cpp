// SPDX-License-Identifier: Apache-2.0
//
// The input has another width.
// expect: norm: rms_norm: wrong input width; expected 768, got 512 [rms_norm_c1] (rms_norm_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  RmsNorm<768> norm{"norm"};
  constexpr auto forward(Tensor<f32, T, 512> x) const { return norm(x); }
};
static_assert(parameters<M>() >= 0);
