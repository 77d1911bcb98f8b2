// SPDX-License-Identifier: Apache-2.0
//
// The operand is a vector.
// expect: forward: tril or triu: rank too small; expected matrices [..., rows, columns], got f32[tokens 1..64] [tril_c1] (tril_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return tril(x); }
};
static_assert(parameters<M>() >= 0);
