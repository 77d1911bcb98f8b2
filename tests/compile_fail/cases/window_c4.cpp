// SPDX-License-Identifier: Apache-2.0
//
// A window without rows.
// expect: forward: a window requires an extent of at least 1 [window_c4]: got 0 (window_c4.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const {
    return max_pool2d<Pair(0, 3)>(x);
  }
};
static_assert(parameters<M>() >= 0);
