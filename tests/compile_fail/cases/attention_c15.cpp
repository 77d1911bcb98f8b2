// SPDX-License-Identifier: Apache-2.0
//
// Attention has no heads.
// expect: kiln: attention: no heads; expected at least one [attention_c15]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q) const { return attention<0>(q, q, q); }
};
static_assert(parameters<M>() >= 0);
