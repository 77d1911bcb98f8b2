// SPDX-License-Identifier: Apache-2.0
//
// The window has no rows.
// expect: forward: window: empty dimension; expected at least 1, got 0 [window_c4] (window_c4.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const {
    return max_pool2d<Pair(0, 3)>(x);
  }
};
static_assert(parameters<M>() >= 0);
