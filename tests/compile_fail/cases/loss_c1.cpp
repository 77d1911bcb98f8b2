// SPDX-License-Identifier: Apache-2.0
//
// The targets have another length than the logits.
// expect: cross_entropy: wrong type or rank of an operand; expected i32 targets, and floating-point logits of one axis more, got f32[8, 5] and i32[7] [loss_c1] (loss_c1.cpp:9)
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 5> x, Tensor<i32, 7> y) const { return cross_entropy(x, y); }
};
static_assert(parameters<M>() >= 0);
