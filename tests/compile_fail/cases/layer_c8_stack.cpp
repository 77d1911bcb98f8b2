// SPDX-License-Identifier: Apache-2.0
//
// The argument of a stack is a pair.
// expect: layer: it cannot be called with these arguments; expected tensors, then options, got 2 values [layer_c8]
#include "case.h"
using namespace kiln;
struct Block {
  constexpr auto forward(const auto &x) const { return x; }
};

struct M : Model {
  Stack<2, Block> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(std::pair{x, x}); }
};
static_assert(parameters<M>() >= 0);
