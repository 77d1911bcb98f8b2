// SPDX-License-Identifier: Apache-2.0
//
// A quantised weight is a result.
// expect: forward: parameter stored in fewer bits: unsupported use; expected the weight of linear, grouped_linear, matmul, conv2d without groups or embedding, got w in result [parameter_c7]
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    auto w = parameter<int8, 8, 8>(x, "w");
    return kiln::outputs(linear(x, w), w);
  }
};
static_assert(parameters<M>() >= 0);
