// SPDX-License-Identifier: Apache-2.0
//
// No tensor has the dimension that is the lower bound of another one.
// expect: forward: dimension: invalid least value; expected a named dimension within its bounds, got context from tokens [dim_c6]
#include "case.h"
using namespace kiln;
constexpr Dim context{"context", T, 128};
struct M : Model {
  constexpr auto forward(Tensor<f32, context, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
