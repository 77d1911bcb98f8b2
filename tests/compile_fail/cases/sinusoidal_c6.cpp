// SPDX-License-Identifier: Apache-2.0
//
// The sections leave a pair.
// expect: forward: sinusoidal: wrong axis of a pair; expected one of those that the positions have, got -1 [sinusoidal_c6] (sinusoidal_c6.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, 2, T> n) const { return sinusoidal(n, frequencies<8>().sections({1, 2})); }
};
static_assert(parameters<M>() >= 0);
