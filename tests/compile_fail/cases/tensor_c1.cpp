// SPDX-License-Identifier: Apache-2.0
//
// The tensor is empty.
// expect: forward: tensor: empty dimension; expected at least 1, got 0 [tensor_c1]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 0> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
