// SPDX-License-Identifier: Apache-2.0
//
// Tensors of rank 9 are added.
// expect: forward: tensor: rank too large; expected at most 8, got [1, 2, 1, 2, 1, 2, 1, 2, 3] [tensor_c3]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 1, 2, 1, 2, 1, 2, 1, 2, 3> x) const { return x + x; }
};
static_assert(parameters<M>() >= 0);
