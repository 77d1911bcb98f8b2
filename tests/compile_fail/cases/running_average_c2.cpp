// SPDX-License-Identifier: Apache-2.0
//
// There is a value for each row.
// expect: forward: running_average: wrong type or shape of the value or the target; expected f32[4], got f32[2, 4] and f32[4] [running_average_c2] (running_average_c2.cpp:10)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 2, 4> x) const {
    auto kept = parameter<f32, 4>(x, "kept");
    return running_average(kept, x, kept, 0.1);
  }
};
static_assert(parameters<M>() >= 0);
