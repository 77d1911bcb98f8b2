// SPDX-License-Identifier: Apache-2.0
//
// A result is no tensor.
// expect: kiln: entry: result is no tensor; expected tensors [model_c8]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return 3; }
};
static_assert(parameters<M>() >= 0);
