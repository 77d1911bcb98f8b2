// SPDX-License-Identifier: Apache-2.0
//
// The width is odd.
// expect: forward: sinusoidal: odd width; expected an even one, got 7 [sinusoidal_c2] (sinusoidal_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> n) const { return sinusoidal<7>(positions(n)); }
};
static_assert(parameters<M>() >= 0);
