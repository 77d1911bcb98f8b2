// SPDX-License-Identifier: Apache-2.0
//
// No epsilon.
// expect: forward: l2_normalize requires an epsilon above 0 [l2_normalize_c1]: got 0.000000 (l2_normalize_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return l2_normalize(x, 0); }
};
static_assert(parameters<M>() >= 0);
