// SPDX-License-Identifier: Apache-2.0
//
// The operand has integers.
// expect: forward: logsumexp: wrong element type; expected a floating-point one, got i32[tokens 1..64] [logsumexp_c1] (logsumexp_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<i32, T> x) const { return logsumexp(x); }
};
static_assert(parameters<M>() >= 0);
