// SPDX-License-Identifier: Apache-2.0
//
// An operand is an array of C++.
// expect: elementwise operation: an operand is no tensor; expected tensors and numbers, kiln::constant of an array, or one of several values, got f32[tokens 1..64, 8] and an array of numbers [broadcast_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    float table[8] = {1, 2, 3};
    return x * table;
  }
};
static_assert(parameters<M>() >= 0);
