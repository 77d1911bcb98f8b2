// SPDX-License-Identifier: Apache-2.0
//
// A layer that carries two tensors returns them in the other order.
// expect: h.{}: stack: layer returns another type than its argument's; expected f32[tokens 1..64, 8] and f32[4], got 2 values [stack_c1] (stack_c1_tuple.cpp:12)
#include "case.h"
using namespace kiln;
struct Swap {
  constexpr auto forward(const tensor auto &x, const tensor auto &y) const { return std::tuple{y, x}; }
};
struct M : Model {
  Stack<2, Swap> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 4> y) const { return h(std::tuple{x, y}); }
};
static_assert(parameters<M>() >= 0);
