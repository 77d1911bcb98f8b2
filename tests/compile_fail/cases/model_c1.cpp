// SPDX-License-Identifier: Apache-2.0
//
// More names than inputs.
// expect: forward: an entry requires as many input names as inputs, or none [model_c1]: got 2, expected 1 (model_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names inputs{"x", "y"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
