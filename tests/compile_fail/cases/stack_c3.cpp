// SPDX-License-Identifier: Apache-2.0
//
// Nested stacks have too many layers.
// expect: h.{}.part.{}: stack: too many layers; expected at most 1048576, with those of the stacks around it, got 2000 [stack_c3]
#include "case.h"
using namespace kiln;
struct Same {
  constexpr auto forward(const tensor auto &x) const { return relu(x); }
};
struct Inner {
  Stack<2000, Same> part{"part"};
  constexpr auto forward(const tensor auto &x) const { return part(x); }
};
struct M : Model {
  Stack<2000, Inner> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
