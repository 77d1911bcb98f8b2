// SPDX-License-Identifier: Apache-2.0
//
// Three values for two layers.
// expect: h.{}: stack: first dimension of per_layer differs from the number of layers; expected 2, got f32[3] [stack_c6] (stack_c6.cpp:12)
#include "case.h"
using namespace kiln;
struct Scaled {
  constexpr auto forward(const tensor auto &x, const tensor auto &scale) const { return x * scale; }
};
struct M : Model {
  Stack<2, Scaled> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 3> scales) const { return h(x, per_layer(scales)); }
};
static_assert(parameters<M>() >= 0);
