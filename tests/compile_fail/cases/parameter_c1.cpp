// SPDX-License-Identifier: Apache-2.0
//
// One parameter asked for in two shapes.
// expect: forward: a parameter requires one element type and shape wherever it is used [parameter_c1]: got [1], expected [8] (parameter_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return x + parameter<f32, 8>(x, "w") + parameter<f32, 1>(x, "w");
  }
};
static_assert(parameters<M>() >= 0);
