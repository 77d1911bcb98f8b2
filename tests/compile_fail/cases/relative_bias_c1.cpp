// SPDX-License-Identifier: Apache-2.0
//
// The table has a row for each position of a window, not for each difference of positions.
// expect: forward: relative_bias: table without a row for each difference of positions; expected 49 rows, got f32[16, 3] [relative_bias_c1] (relative_bias_c1.cpp:9)
#include "case.h"
#include "kiln/windows.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 16, 3> table) const { return relative_bias<4>(table); }
};
static_assert(parameters<M>() >= 0);
