// SPDX-License-Identifier: Apache-2.0
//
// Integers.
// expect: forward: attention requires queries, keys and values of one floating-point type [attention_c12]: got i32[tokens 1..64, 8] and i32[tokens 1..64, 8] and i32[tokens 1..64, 8] (attention_c12.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T, 8> q) const { return attention<2>(q, q, q); }
};
static_assert(parameters<M>() >= 0);
