// SPDX-License-Identifier: Apache-2.0
//
// A loop depends on an element.
// expect: kiln: condition: a tensor has no value while the model is traced; expected kiln::where, kiln::logical_and, logical_or or logical_not [tensor_c6]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    while (max(max(x)) > 1)
      x /= 2;
    return x;
  }
};
static_assert(parameters<M>() >= 0);
