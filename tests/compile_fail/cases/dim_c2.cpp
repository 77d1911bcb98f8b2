// SPDX-License-Identifier: Apache-2.0
//
// The lower bound exceeds the upper bound.
// expect: forward: dimension: bounds out of order; expected 1 <= min <= max, got rows 8..1 [dim_c2]
#include "case.h"
using namespace kiln;
constexpr Dim wrong{"rows", 8, 1};
struct M : Model {
  constexpr auto forward(Tensor<f32, wrong, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
