// SPDX-License-Identifier: Apache-2.0
//
// The permutation has an axis twice.
// expect: forward: transpose: axes are no permutation; expected each axis once, got f32[tokens 1..64, 8] by <0, 0> [transpose_c1] (transpose_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return transpose<0, 0>(x); }
};
static_assert(parameters<M>() >= 0);
