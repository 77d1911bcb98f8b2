// SPDX-License-Identifier: Apache-2.0
//
// The second type of a pattern changes the width. The message has the names of a list of layers.
// expect: h.{}: stack: layer returns another type than its argument's; expected f32[tokens 1..64, 8], got f32[tokens 1..64, 4] [stack_c1] (stack_c1_pattern.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Stack<4, Pattern<1, Linear<8, 8>, 1, Linear<8, 4>>> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
