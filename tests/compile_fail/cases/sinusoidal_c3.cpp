// SPDX-License-Identifier: Apache-2.0
//
// The base is 1, so all waves are equal.
// expect: forward: sinusoidal: base too small; expected one above 1, got 1.000000 [sinusoidal_c3] (sinusoidal_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> n) const { return sinusoidal<8>(positions(n), 1.0); }
};
static_assert(parameters<M>() >= 0);
