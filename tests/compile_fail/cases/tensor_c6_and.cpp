// SPDX-License-Identifier: Apache-2.0
//
// The operator && has tensors as operands.
// expect: kiln: condition: a tensor has no value while the model is traced; expected kiln::where, kiln::logical_and, logical_or or logical_not [tensor_c6]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return cast<f32>(x > 0 && x < 1); }
};
static_assert(parameters<M>() >= 0);
