// SPDX-License-Identifier: Apache-2.0
//
// Another number of columns.
// expect: mse and binary_cross_entropy require two tensors of one floating-point type and one shape [loss_c3]: got f32[8, 5] and f32[8, 4] (loss_c3.cpp:9)
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 5> x, Tensor<f32, 8, 4> y) const { return mse(x, y); }
};
static_assert(parameters<M>() >= 0);
