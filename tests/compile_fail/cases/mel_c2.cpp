// SPDX-License-Identifier: Apache-2.0
//
// The highest frequency is above half of the rate.
// expect: forward: mel: frequencies are not from 0 to half of the rate in increasing order; expected 9000.000000, got 0.000000 [mel_c2] (mel_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 9> x) const { return mel<5>(x, {.highest = 9000}); }
};
static_assert(parameters<M>() >= 0);
