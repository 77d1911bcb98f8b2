// SPDX-License-Identifier: Apache-2.0
//
// The lower bound of a dimension is an expression, not a named dimension.
// expect: forward: dimension: invalid least value; expected a named dimension within its bounds, got context 2..128 [dim_c6]
#include "case.h"
using namespace kiln;
constexpr Dim wrong{"context", T + 1, 128};
struct M : Model {
  constexpr auto forward(Tensor<f32, wrong, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
