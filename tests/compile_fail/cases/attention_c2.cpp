// SPDX-License-Identifier: Apache-2.0
//
// The keys have another width than the queries.
// expect: forward: attention: wrong width of the keys; expected 8, got 4 [attention_c2] (attention_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, S, 4> k) const { return attention<2>(q, k, k); }
};
static_assert(parameters<M>() >= 0);
