// SPDX-License-Identifier: Apache-2.0
//
// The epsilon is 0.
// expect: forward: l2_normalize: epsilon is not positive; expected one above 0, got 0.000000 [l2_normalize_c1] (l2_normalize_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return l2_normalize(x, 0); }
};
static_assert(parameters<M>() >= 0);
