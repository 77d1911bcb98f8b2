// SPDX-License-Identifier: Apache-2.0
//
// Seven rows of the weight are for three groups.
// expect: forward: grouped_linear: wrong rows of the weight; expected the same number for each group, got 7 rows for 3 [grouped_linear_c4] (grouped_linear_c4.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> ends) const {
    return grouped_linear(x, parameter<f32, 7, 8>(x, "w"), ends);
  }
};
static_assert(parameters<M>() >= 0);
