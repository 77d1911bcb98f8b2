// SPDX-License-Identifier: Apache-2.0
//
// Twelve queries, but ten keys.
// expect: forward: distance_bias: fewer keys than queries; expected 12, got 10 [distance_bias_c1] (distance_bias_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 12, 8> q, Tensor<f32, 10, 8> k, Tensor<f32, 5, 2> t) const {
    return attention<2>(q, k, k, distance_bias(q, k, t));
  }
};
static_assert(parameters<M>() >= 0);
