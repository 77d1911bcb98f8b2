// SPDX-License-Identifier: Apache-2.0
//
// The queries, keys and values are integers.
// expect: forward: attention: wrong element types; expected one floating-point type for queries, keys and values, got i32[tokens 1..64, 8] and i32[tokens 1..64, 8] and i32[tokens 1..64, 8] [attention_c12] (attention_c12.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T, 8> q) const { return attention<2>(q, q, q); }
};
static_assert(parameters<M>() >= 0);
