// SPDX-License-Identifier: Apache-2.0
//
// The axis is outside the rank.
// expect: forward: positions: axis out of range; expected one within the rank, got axis 1 of i32[tokens 1..64] [positions_c1] (positions_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> n) const { return positions<1>(n); }
};
static_assert(parameters<M>() >= 0);
