// SPDX-License-Identifier: Apache-2.0
//
// A layer of the stack returns two values.
// expect: h.{}: stack: layer returns another type than its argument's; expected f32[tokens 1..64, 8], got 2 values [stack_c1] (stack_c1_pair.cpp:8)
#include "case.h"
using namespace kiln;
struct Block {
  constexpr auto forward(const tensor auto &x) const { return std::pair{relu(x), x}; }
};

struct M : Model {
  Stack<2, Block> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
