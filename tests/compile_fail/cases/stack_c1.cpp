// SPDX-License-Identifier: Apache-2.0
//
// A layer of the stack changes the width.
// expect: h.{}: stack: layer returns another type than its argument's; expected f32[tokens 1..64, 8], got f32[tokens 1..64, 4] [stack_c1] (stack_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct Halve {
  Linear<8, 4> fc{"fc"};
  constexpr auto forward(const tensor auto &x) const { return fc(x); }
};

struct M : Model {
  Stack<3, Halve> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
