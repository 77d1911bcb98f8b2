// SPDX-License-Identifier: Apache-2.0
//
// Booleans are not added.
// expect: forward: scatter_add: wrong element types; expected one type of numbers, got boolean[tokens 1..64, 8] and boolean[tokens 1..64, 8] [scatter_add_c4] (scatter_add_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<boolean, T, 8> x, Tensor<i32, T, 8> i) const { return scatter_add(x, i, x); }
};
static_assert(parameters<M>() >= 0);
