// SPDX-License-Identifier: Apache-2.0
//
// Two dimensions with one name have different bounds.
// expect: forward: dimension: other bounds than before; expected tokens 1..64, got tokens 1..32 [dim_c5]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, Dim{"tokens", 1, 32}, 8> y) const { return x * sum(sum(y)); }
};
static_assert(parameters<M>() >= 0);
