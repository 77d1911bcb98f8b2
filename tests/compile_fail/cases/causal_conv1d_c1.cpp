// SPDX-License-Identifier: Apache-2.0
//
// A signal with a batch.
// expect: forward: causal_conv1d: wrong rank of the stream or the weight; expected [steps, channels] and [outputs, channels / groups, kernel], got f32[batch 1..8, tokens 1..64, 6] and f32[6, 6, 3] [causal_conv1d_c1] (causal_conv1d_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, B, T, 6> x, Tensor<f32, 6, 6, 3> w) const { return causal_conv1d(x, w); }
};
static_assert(parameters<M>() >= 0);
