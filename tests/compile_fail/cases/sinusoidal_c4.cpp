// SPDX-License-Identifier: Apache-2.0
//
// A negative frequency.
// expect: forward: sinusoidal: wrong frequency of a pair; expected one from 0 to 65536, got -1.000000 [sinusoidal_c4] (sinusoidal_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> n) const { return sinusoidal(n, frequencies(std::array{1.0, -1.0})); }
};
static_assert(parameters<M>() >= 0);
