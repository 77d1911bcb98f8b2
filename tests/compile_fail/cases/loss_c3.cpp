// SPDX-License-Identifier: Apache-2.0
//
// The operands have different numbers of columns.
// expect: mse or binary_cross_entropy: wrong type or shape of an operand; expected two tensors of one floating-point type and one shape, got f32[8, 5] and f32[8, 4] [loss_c3] (loss_c3.cpp:9)
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 5> x, Tensor<f32, 8, 4> y) const { return mse(x, y); }
};
static_assert(parameters<M>() >= 0);
