// SPDX-License-Identifier: Apache-2.0
//
// The function would divide by 0.
// expect: forward: celu: alpha is not positive; expected one above 0, got 0.000000 [celu_c1] (celu_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return celu(x, 0); }
};
static_assert(parameters<M>() >= 0);
