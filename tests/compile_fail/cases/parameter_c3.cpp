// SPDX-License-Identifier: Apache-2.0
//
// A parameter without a name.
// expect: forward: parameters and states require a name [parameter_c3]: got an empty one (parameter_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x + parameter<f32, 8>(x, ""); }
};
static_assert(parameters<M>() >= 0);
