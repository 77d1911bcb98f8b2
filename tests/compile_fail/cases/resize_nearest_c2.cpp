// SPDX-License-Identifier: Apache-2.0
//
// The result is empty.
// expect: forward: resize_nearest: empty height or width of the result; expected at least 1, got 0 by 4 [resize_nearest_c2] (resize_nearest_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const { return resize_nearest<Pair(0, 4)>(x); }
};
static_assert(parameters<M>() >= 0);
