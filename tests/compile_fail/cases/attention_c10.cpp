// SPDX-License-Identifier: Apache-2.0
//
// Causal attention has fewer keys than queries.
// expect: forward: causal attention: fewer keys than queries; expected tokens 1..64, got source 1..128 [attention_c10] (attention_c10.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, S, 8> k) const { return attention<2>(q, k, k, causal); }
};
static_assert(parameters<M>() >= 0);
