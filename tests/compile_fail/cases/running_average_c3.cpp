// SPDX-License-Identifier: Apache-2.0
//
// The rate is 0.
// expect: forward: running_average: rate out of range; expected one in (0, 1], got 0.000000 [running_average_c3] (running_average_c3.cpp:10)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4> x) const {
    auto kept = parameter<f32, 4>(x, "kept");
    return running_average(kept, x, x, 0);
  }
};
static_assert(parameters<M>() >= 0);
