// SPDX-License-Identifier: Apache-2.0
//
// The model does not derive from kiln::Model.
// expect: kiln: model: wrong base class; expected kiln::Model [model_c11]
#include "case.h"
using namespace kiln;
struct M {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
