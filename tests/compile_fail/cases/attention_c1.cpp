// SPDX-License-Identifier: Apache-2.0
//
// The number of heads does not divide the query width.
// expect: self_attn: attention: query width is not divisible by the heads; expected a multiple of 3, got 8 [attention_c1] (attention_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  MultiHeadAttention<8, 3> self_attn{"self_attn"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return self_attn(x); }
};
static_assert(parameters<M>() >= 0);
