// SPDX-License-Identifier: Apache-2.0
//
// The embedding has another width.
// expect: forward: logits: wrong input width; expected 4, got 8 [logits_c1] (logits_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Embedding<10, 4> table{"table"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return logits(x, table); }
};
static_assert(parameters<M>() >= 0);
