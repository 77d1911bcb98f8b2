// SPDX-License-Identifier: Apache-2.0
//
// A sum of tensors of rank 7.
// expect: forward: a tensor requires a rank of at most 6 [tensor_c3]: got [1, 2, 1, 2, 1, 2, 3]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 1, 2, 1, 2, 1, 2, 3> x) const { return x + x; }
};
static_assert(parameters<M>() >= 0);
