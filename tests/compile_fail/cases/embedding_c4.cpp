// SPDX-License-Identifier: Apache-2.0
//
// The table has integers.
// expect: forward: embedding: wrong element type of the table; expected a floating-point one, got i32[50, 8] [embedding_c4] (embedding_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> x, Tensor<i32, 50, 8> table) const { return embedding(x, table); }
};
static_assert(parameters<M>() >= 0);
