// SPDX-License-Identifier: Apache-2.0
//
// Four values for the three layers of a pattern.
// expect: h: stack: first dimension of per_layer differs from the number of layers; expected 3, got f32[4] [stack_c6] (stack_c6_pattern.cpp:15)
#include "case.h"
using namespace kiln;
struct Scaled {
  constexpr auto forward(const tensor auto &x, const tensor auto &scale) const { return x * scale; }
};
struct Shifted {
  constexpr auto forward(const tensor auto &x, const tensor auto &scale) const { return x + scale; }
};
struct M : Model {
  Stack<3, Pattern<1, Scaled, 1, Shifted>> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 4> scales) const { return h(x, per_layer(scales)); }
};
static_assert(parameters<M>() >= 0);
