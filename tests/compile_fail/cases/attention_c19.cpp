// SPDX-License-Identifier: Apache-2.0
//
// A sink for each of three heads, of attention with two.
// expect: forward: attention: wrong type or shape of the sinks; expected f32[2], got f32[3] [attention_c19] (attention_c19.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, 3> s) const { return attention<2>(q, q, q, sinks(s)); }
};
static_assert(parameters<M>() >= 0);
