// SPDX-License-Identifier: Apache-2.0
//
// An operand is a layer, not its result.
// expect: elementwise operation: an operand is no tensor; expected tensors and numbers, kiln::constant of an array, or one of several values, got f32[tokens 1..64, 8] and a layer [broadcast_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  LayerNorm<8> norm{"norm"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x + norm; }
};
static_assert(parameters<M>() >= 0);
