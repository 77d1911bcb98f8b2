// SPDX-License-Identifier: Apache-2.0
//
// Booleans have no order.
// expect: forward: sort: wrong element type; expected numbers, got boolean[tokens 1..64] [sort_c2] (sort_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<boolean, T> x) const { return argsort(x); }
};
static_assert(parameters<M>() >= 0);
