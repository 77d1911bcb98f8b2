// SPDX-License-Identifier: Apache-2.0
//
// Scores that are limited to less than nothing.
// expect: forward: attention: limit of the scores is not positive; expected one above 0, got -0.500000 [attention_c18] (attention_c18.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q) const { return attention<2>(q, q, q, softcap(-0.5)); }
};
static_assert(parameters<M>() >= 0);
