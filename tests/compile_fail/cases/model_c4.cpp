// SPDX-License-Identifier: Apache-2.0
//
// An input and an output have one name.
// expect: forward: entry: name is used twice; expected different names for its inputs and outputs, got x [model_c4] (model_c4.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names inputs{"x"}, outputs{"x"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
