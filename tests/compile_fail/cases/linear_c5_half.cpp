// SPDX-License-Identifier: Apache-2.0
//
// An f16 layer follows an f32 layer: values are rounded only by casts.
// expect: fc: linear: wrong element types; expected one floating-point type, got f32[tokens 1..64, 8] and bf16[16] [linear_c5] (linear_c5_half.cpp:10)
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 16, true, WeightOrder::out_in, bf16> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
