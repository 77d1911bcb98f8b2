// SPDX-License-Identifier: Apache-2.0
//
// An entry has 17 inputs.
// expect: kiln: entry: too many inputs; expected at most 16 [model_c9]
#include "case.h"
using namespace kiln;
using X = Tensor<f32, T>;
struct M : Model {
  constexpr auto forward(X a, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X) const { return relu(a); }
};
static_assert(parameters<M>() >= 0);
