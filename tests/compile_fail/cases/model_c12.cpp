// SPDX-License-Identifier: Apache-2.0
//
// The model's function is not named forward.
// expect: kiln: model: neither forward nor entries; expected one of them [model_c12]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto run(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
