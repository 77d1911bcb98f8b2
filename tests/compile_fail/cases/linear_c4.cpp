// SPDX-License-Identifier: Apache-2.0
//
// The bias has the input's width.
// expect: forward: linear: wrong bias shape; expected [4], got [8] [linear_c4] (linear_c4.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return linear(x, parameter<f32, 4, 8>(x, "w"), parameter<f32, 8>(x, "b"));
  }
};
static_assert(parameters<M>() >= 0);
