// SPDX-License-Identifier: Apache-2.0
//
// A sliding window of attention that is not causal.
// expect: forward: attention: invalid window; expected at least one key, of causal attention, got 4 [attention_c17] (attention_c17.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q) const { return attention<2>(q, q, q, window(4)); }
};
static_assert(parameters<M>() >= 0);
