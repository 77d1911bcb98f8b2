// SPDX-License-Identifier: Apache-2.0
//
// There is a length for each token instead of each batch element.
// expect: forward: attention: wrong type or shape of the lengths; expected i32[batch 1..8], got i32[tokens 1..64] [attention_c9] (attention_c9.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, B, T, 8> q, Tensor<i32, T> n) const { return attention<2>(q, q, q, lengths(n)); }
};
static_assert(parameters<M>() >= 0);
