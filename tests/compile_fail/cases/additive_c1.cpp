// SPDX-License-Identifier: Apache-2.0
//
// The query is a vector.
// expect: attention: additive attention: rank too small; expected 2 or more for queries and keys, got f32[8] and f32[tokens 1..64, 4] [additive_c1] (additive_c1.cpp:10)
#include "case.h"
using namespace kiln;
struct M : Model {
  AdditiveAttention<8, 6, 4> attention{"attention"};
  constexpr auto forward(Tensor<f32, 8> h, Tensor<f32, T, 6> x) const {
    return attention.weights(h, attention.keys(x));
  }
};
static_assert(parameters<M>() >= 0);
