// SPDX-License-Identifier: Apache-2.0
//
// The layer of a stack is a stack.
// expect: kiln: stack: its layer is a stack, which needs a name in it; expected a layer that has the inner stack as a member [stack_c5]
#include "case.h"
using namespace kiln;
struct M : Model {
  Stack<2, Stack<3, Linear<8, 8>>> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
