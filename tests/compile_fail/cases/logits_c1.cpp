// SPDX-License-Identifier: Apache-2.0
//
// An embedding of another width.
// expect: forward: logits requires the input width to equal the embedding's [logits_c1]: got 8, expected 4 (logits_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Embedding<10, 4> table{"table"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return logits(x, table); }
};
static_assert(parameters<M>() >= 0);
