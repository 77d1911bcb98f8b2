// SPDX-License-Identifier: Apache-2.0
//
// The target is no parameter.
// expect: forward: running_average: operand is no kept parameter; expected one, got input [running_average_c1] (running_average_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4> x) const { return running_average(x, x, x, 0.1); }
};
static_assert(parameters<M>() >= 0);
