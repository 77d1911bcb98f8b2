// SPDX-License-Identifier: Apache-2.0
//
// No tensor has the extent that is the least of another.
// expect: forward: a dimension requires a named extent within its bounds as the least [dim_c6]: got context from tokens
#include "case.h"
using namespace kiln;
constexpr Dim context{"context", T, 128};
struct M : Model {
  constexpr auto forward(Tensor<f32, context, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
