// SPDX-License-Identifier: Apache-2.0
//
// There are too few values.
// expect: forward: constant: wrong number of values; expected 8, got 3 [constant_c1] (constant_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x + constant<f32, 8>(x, {1, 2, 3}); }
};
static_assert(parameters<M>() >= 0);
