// SPDX-License-Identifier: Apache-2.0
//
// Attention has two masks.
// expect: kiln: attention: several masks; expected at most one [attention_c13]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, T, T> m) const {
    return attention<2>(q, q, q, mask(m) | mask(m));
  }
};
static_assert(parameters<M>() >= 0);
