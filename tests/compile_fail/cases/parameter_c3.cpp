// SPDX-License-Identifier: Apache-2.0
//
// A parameter has no name.
// expect: forward: parameter or state: missing name; expected a non-empty one, got an empty one [parameter_c3] (parameter_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x + parameter<f32, 8>(x, ""); }
};
static_assert(parameters<M>() >= 0);
