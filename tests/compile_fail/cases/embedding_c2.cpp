// SPDX-License-Identifier: Apache-2.0
//
// The table has rank 3.
// expect: forward: embedding: wrong rank of the table; expected 2, got f32[2, 3, 4] [embedding_c2] (embedding_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> n) const { return embedding(n, parameter<f32, 2, 3, 4>(n, "table")); }
};
static_assert(parameters<M>() >= 0);
