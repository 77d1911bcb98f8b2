// SPDX-License-Identifier: Apache-2.0
//
// A pattern without layers of one of its types.
// expect: kiln: stack: invalid pattern; expected at least one layer of each type [stack_c8]
#include "case.h"
using namespace kiln;
struct M : Model {
  Stack<4, Pattern<2, Linear<8, 8>, 0, LayerNorm<8>>> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
