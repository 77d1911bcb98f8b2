// SPDX-License-Identifier: Apache-2.0
//
// Only one operand has a batch dimension.
// expect: forward: attention: different leading dimensions; expected the same for queries, keys and values, got f32[batch 1..8, tokens 1..64, 8] and f32[tokens 1..64, 8] and f32[tokens 1..64, 8] [attention_c5] (attention_c5.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, B, T, 8> q, Tensor<f32, T, 8> k) const { return attention<2>(q, k, k); }
};
static_assert(parameters<M>() >= 0);
