// SPDX-License-Identifier: Apache-2.0
//
// The mask has wrong dimensions.
// expect: forward: attention: mask does not broadcast to [..., queries, keys]; expected [tokens 1..64, tokens 1..64], got [tokens 1..64, 5] [attention_c7] (attention_c7.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, T, 5> m) const { return attention<2>(q, q, q, mask(m)); }
};
static_assert(parameters<M>() >= 0);
