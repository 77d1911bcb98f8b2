// SPDX-License-Identifier: Apache-2.0
//
// The number of key heads does not divide the number of query heads.
// expect: forward: attention: number of heads is not divisible by that of keys and values; expected a multiple of 3, got 4 [attention_c16] (attention_c16.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, T, 6> k) const { return attention<4, 3>(q, k, k); }
};
static_assert(parameters<M>() >= 0);
