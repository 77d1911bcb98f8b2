// SPDX-License-Identifier: Apache-2.0
//
// Twelve queries, but ten keys.
// expect: forward: alibi: fewer keys than queries; expected 12, got 10 [alibi_c1] (alibi_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 12, 8> q, Tensor<f32, 10, 8> k) const {
    return attention<2>(q, k, k, alibi<2>(q, k));
  }
};
static_assert(parameters<M>() >= 0);
