// SPDX-License-Identifier: Apache-2.0
//
// An operand is a vector.
// expect: forward: attention: rank too small; expected 2 or more for queries, keys and values, got f32[8] and f32[8] and f32[8] [attention_c6] (attention_c6.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8> q) const { return attention<2>(q, q, q); }
};
static_assert(parameters<M>() >= 0);
