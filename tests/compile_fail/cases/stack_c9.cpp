// SPDX-License-Identifier: Apache-2.0
//
// A pattern of patterns.
// expect: kiln: stack: a pattern in a pattern; expected types of layers [stack_c9]
#include "case.h"
using namespace kiln;
struct M : Model {
  Stack<4, Pattern<2, Pattern<1, Linear<8, 8>>, 1, LayerNorm<8>>> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
