// SPDX-License-Identifier: Apache-2.0
//
// The result is empty.
// expect: forward: bicubic or antialiased resize: empty height or width of the result; expected at least 1, got 4 by 0 [resize_bicubic_c2] (resize_bicubic_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8, 3> x) const { return resize_bicubic<Pair(4, 0)>(x); }
};
static_assert(parameters<M>() >= 0);
