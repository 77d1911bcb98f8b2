// SPDX-License-Identifier: Apache-2.0
//
// The error names the line of the operator.
// expect: forward: elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got f32[tokens 1..64, 8] and f32[tokens 1..64, 4] [broadcast_c1] (broadcast_c1_line.cpp:11)
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 4> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    auto y = fc(x);
    return x + y;
  }
};
static_assert(parameters<M>() >= 0);
