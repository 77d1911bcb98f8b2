// SPDX-License-Identifier: Apache-2.0
//
// A parameter has a dynamic dimension.
// expect: forward: parameter, constant or state: dynamic dimension; expected static ones, got tokens 1..64 [tensor_c5] (tensor_c5.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x + parameter<f32, T, 8>(x, "places"); }
};
static_assert(parameters<M>() >= 0);
