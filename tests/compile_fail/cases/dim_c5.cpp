// SPDX-License-Identifier: Apache-2.0
//
// One name with two bounds.
// expect: forward: a named dimension requires the same bounds everywhere in a model [dim_c5]: got tokens 1..32, expected tokens 1..64
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, Dim{"tokens", 1, 32}, 8> y) const { return x * sum(sum(y)); }
};
static_assert(parameters<M>() >= 0);
