// SPDX-License-Identifier: Apache-2.0
//
// A layer that gives two values.
// expect: h.{}: stack requires a layer that returns the type of its first argument [stack_c1]: got 2 values, expected f32[tokens 1..64, 8] (stack_c1_pair.cpp:8)
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
