// SPDX-License-Identifier: Apache-2.0
//
// An extent that is not 1.
// expect: forward: expand requires extents that broadcast to the result's [expand_c1]: got [4], expected [tokens 1..64, 8] (expand_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 4>, Tensor<f32, 4> x) const { return expand<T, 8>(x); }
};
static_assert(parameters<M>() >= 0);
