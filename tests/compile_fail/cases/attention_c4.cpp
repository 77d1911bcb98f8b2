// SPDX-License-Identifier: Apache-2.0
//
// There are more values than keys.
// expect: forward: attention: wrong number of values; expected tokens 1..64, got source 1..128 [attention_c4] (attention_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, S, 8> v) const { return attention<2>(q, q, v); }
};
static_assert(parameters<M>() >= 0);
