// SPDX-License-Identifier: Apache-2.0
//
// The table has fewer rows than there are positions.
// expect: wpe: embedding: too few rows for the positions; expected tokens 1..64, got 32 [embedding_c3] (embedding_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Embedding<32, 8> wpe{"wpe"};
  constexpr auto forward(Tensor<i32, T> n) const { return wpe(positions(n)); }
};
static_assert(parameters<M>() >= 0);
