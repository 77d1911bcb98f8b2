// SPDX-License-Identifier: Apache-2.0
//
// The forward is overloaded.
// expect: kiln: model: its forward cannot be taken; expected one public function that is no template, or entries [model_c18]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
  constexpr auto forward(Tensor<f32, T, 4> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
