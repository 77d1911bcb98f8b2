// SPDX-License-Identifier: Apache-2.0
//
// The indices have the wrong type.
// expect: table: embedding: wrong type of the indices; expected i32, got f32[tokens 1..64, 8] [embedding_c1] (embedding_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Embedding<10, 8> table{"table"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return table(x); }
};
static_assert(parameters<M>() >= 0);
