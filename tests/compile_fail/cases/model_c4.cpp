// SPDX-License-Identifier: Apache-2.0
//
// One name for input and output.
// expect: forward: an entry requires different names for its inputs and outputs [model_c4]: got x (model_c4.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names inputs{"x"}, outputs{"x"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
