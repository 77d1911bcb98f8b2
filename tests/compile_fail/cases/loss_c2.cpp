// SPDX-License-Identifier: Apache-2.0
//
// The label smoothing is 1.
// expect: cross_entropy: label smoothing out of range; expected one in [0, 1), got 1.000000 [loss_c2] (loss_c2.cpp:10)
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 5> x, Tensor<i32, 8> y) const {
    return cross_entropy<CrossEntropyOptions{.label_smoothing = 1}>(x, y);
  }
};
static_assert(parameters<M>() >= 0);
