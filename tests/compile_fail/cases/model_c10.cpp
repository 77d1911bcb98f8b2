// SPDX-License-Identifier: Apache-2.0
//
// The forward of the model is not const.
// expect: kiln: entry: no const member function; expected one of the model that is no template [model_c10]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) { return relu(x); }
};
static_assert(parameters<M>() >= 0);
