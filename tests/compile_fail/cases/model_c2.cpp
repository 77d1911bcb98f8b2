// SPDX-License-Identifier: Apache-2.0
//
// There are fewer names than outputs.
// expect: forward: entry: wrong number of output names; expected 2, got 1 [model_c2] (model_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names outputs{"x"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return kiln::outputs(x, relu(x)); }
};
static_assert(parameters<M>() >= 0);
