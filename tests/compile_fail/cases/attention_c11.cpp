// SPDX-License-Identifier: Apache-2.0
//
// The scale is negative.
// expect: forward: attention: scale is not positive; expected one above 0, got -0.500000 [attention_c11] (attention_c11.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q) const { return attention<2>(q, q, q, scale(-0.5)); }
};
static_assert(parameters<M>() >= 0);
