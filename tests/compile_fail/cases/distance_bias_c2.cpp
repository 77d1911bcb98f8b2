// SPDX-License-Identifier: Apache-2.0
//
// An even number of distances.
// expect: forward: distance_bias: wrong type or shape of the table; expected f32[2 F + 1, heads], got f32[4, 2] [distance_bias_c2] (distance_bias_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, 4, 2> t) const {
    return attention<2>(q, q, q, distance_bias(q, q, t));
  }
};
static_assert(parameters<M>() >= 0);
