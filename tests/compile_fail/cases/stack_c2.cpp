// SPDX-License-Identifier: Apache-2.0
//
// The stack has no layers.
// expect: h: stack: invalid number of layers; expected at least one, got 0 [stack_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  Stack<0, EncoderBlock<8, 2, 16>> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
