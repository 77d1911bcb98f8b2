// SPDX-License-Identifier: Apache-2.0
//
// The mask is boolean.
// expect: forward: attention: wrong element type of the mask; expected f32, got boolean [attention_c8] (attention_c8.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<boolean, T, T> m) const { return attention<2>(q, q, q, mask(m)); }
};
static_assert(parameters<M>() >= 0);
