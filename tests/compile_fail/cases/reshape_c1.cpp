// SPDX-License-Identifier: Apache-2.0
//
// The number of elements changes.
// expect: forward: reshape: another number of elements; expected [tokens 1..64, 2, 3], got [tokens 1..64, 8] [reshape_c1] (reshape_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return reshape<T, 2, 3>(x); }
};
static_assert(parameters<M>() >= 0);
