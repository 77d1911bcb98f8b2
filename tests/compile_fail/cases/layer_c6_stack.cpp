// SPDX-License-Identifier: Apache-2.0
//
// The forward of a stack's layer has two tensors.
// expect: layer: its forward cannot be called with these arguments; expected a public const one that takes them, got f32[tokens 1..64, 8] [layer_c6]
#include "case.h"
using namespace kiln;
struct Block {
  constexpr auto forward(const tensor auto &x, const tensor auto &y) const { return x + y; }
};

struct M : Model {
  Stack<2, Block> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
