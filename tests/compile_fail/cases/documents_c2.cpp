// SPDX-License-Identifier: Apache-2.0
//
// Lengths of a batch for one sequence.
// expect: forward: documents: wrong type or shape of the lengths; expected i32[..., documents], got i32[2, 3] [documents_c2] (documents_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<i32, 2, 3> n) const {
    return attention<2>(q, q, q, documents(q, q, n));
  }
};
static_assert(parameters<M>() >= 0);
