// SPDX-License-Identifier: Apache-2.0
//
// The input has integers.
// expect: fc: linear: wrong element types; expected one floating-point type, got i32[tokens 1..64, 8] and f32[8] [linear_c5] (linear_c5.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(Tensor<i32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
