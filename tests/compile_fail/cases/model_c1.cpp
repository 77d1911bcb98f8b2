// SPDX-License-Identifier: Apache-2.0
//
// There are more names than inputs.
// expect: forward: entry: wrong number of input names; expected 1, got 2 [model_c1] (model_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names inputs{"x", "y"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
