// SPDX-License-Identifier: Apache-2.0
//
// A model of no base.
// expect: kiln: a model requires kiln::Model as its base [model_c11]
#include "case.h"
using namespace kiln;
struct M {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
