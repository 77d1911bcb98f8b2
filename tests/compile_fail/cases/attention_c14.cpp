// SPDX-License-Identifier: Apache-2.0
//
// Attention has two tensors of lengths.
// expect: kiln: attention: several tensors of lengths; expected at most one [attention_c14]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, B, T, 8> q, Tensor<i32, B> n) const {
    return attention<2>(q, q, q, lengths(n) | lengths(n));
  }
};
static_assert(parameters<M>() >= 0);
