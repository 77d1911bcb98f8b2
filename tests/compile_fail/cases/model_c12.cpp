// SPDX-License-Identifier: Apache-2.0
//
// A model whose function has another name.
// expect: kiln: a model requires a forward, or entries [model_c12]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto run(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
