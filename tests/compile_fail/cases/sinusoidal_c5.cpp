// SPDX-License-Identifier: Apache-2.0
//
// Positions of text and pictures with frequencies of pictures.
// expect: forward: sinusoidal: wrong first extent of the positions, which is the number of axes; expected 2, got 3 [sinusoidal_c5] (sinusoidal_c5.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, 3, T> n) const { return sinusoidal(n, axial_frequencies<8, 2>()); }
};
static_assert(parameters<M>() >= 0);
