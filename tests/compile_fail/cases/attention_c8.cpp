// SPDX-License-Identifier: Apache-2.0
//
// A boolean mask.
// expect: forward: attention requires a mask of the queries' element type [attention_c8]: got boolean, expected f32 (attention_c8.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<boolean, T, T> m) const { return attention<2>(q, q, q, mask(m)); }
};
static_assert(parameters<M>() >= 0);
