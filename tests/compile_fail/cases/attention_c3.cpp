// SPDX-License-Identifier: Apache-2.0
//
// The number of heads does not divide the value width.
// expect: forward: attention: value width is not divisible by the heads; expected a multiple of 2, got 7 [attention_c3] (attention_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, T, 7> v) const { return attention<2>(q, q, v); }
};
static_assert(parameters<M>() >= 0);
