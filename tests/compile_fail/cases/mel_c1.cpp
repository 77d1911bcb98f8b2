// SPDX-License-Identifier: Apache-2.0
//
// The number of bins is dynamic.
// expect: forward: mel: invalid power spectrum or number of filters; expected f32 [..., bins] of two or more bins, got f32[2, tokens 1..64] [mel_c1] (mel_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 2, T> x) const { return mel<5>(x); }
};
static_assert(parameters<M>() >= 0);
