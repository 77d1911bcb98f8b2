// SPDX-License-Identifier: Apache-2.0
//
// An operand is the outputs and states of a recurrent layer.
// expect: elementwise operation: an operand is no tensor; expected tensors and numbers, kiln::constant of an array, or one of several values, got f32[tokens 1..64, 8] and the outputs and the last state of a recurrent layer [broadcast_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  Gru<8, 8> gru{"gru"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x + gru(x); }
};
static_assert(parameters<M>() >= 0);
