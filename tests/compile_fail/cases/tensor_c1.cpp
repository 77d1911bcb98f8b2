// SPDX-License-Identifier: Apache-2.0
//
// An empty tensor.
// expect: forward: a tensor requires every extent to be at least 1 [tensor_c1]: got 0
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 0> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
