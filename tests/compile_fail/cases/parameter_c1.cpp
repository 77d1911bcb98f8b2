// SPDX-License-Identifier: Apache-2.0
//
// One parameter is used with two shapes.
// expect: forward: parameter: another element type or shape than before; expected [8], got [1] [parameter_c1] (parameter_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return x + parameter<f32, 8>(x, "w") + parameter<f32, 1>(x, "w");
  }
};
static_assert(parameters<M>() >= 0);
