// SPDX-License-Identifier: Apache-2.0
//
// Slopes as a row of a matrix.
// expect: forward: alibi: wrong type or shape of the slopes; expected f32[heads], got f32[1, 2] [alibi_c2] (alibi_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, 1, 2> s) const {
    return attention<2>(q, q, q, alibi(q, q, s));
  }
};
static_assert(parameters<M>() >= 0);
