// SPDX-License-Identifier: Apache-2.0
//
// The probability is 1.
// expect: forward: dropout: probability out of range; expected one in [0, 1), got 1.000000 [dropout_c1] (dropout_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return dropout(x, 1.0); }
};
static_assert(parameters<M>() >= 0);
