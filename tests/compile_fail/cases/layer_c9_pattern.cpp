// SPDX-License-Identifier: Apache-2.0
//
// A layer has the name of a layer of a pattern.
// expect: layer, parameter or state: name of a stack followed by a number; expected one that no layer of the stack may have, got h.1 [layer_c9]
#include "case.h"
using namespace kiln;
struct M : Model {
  Stack<4, Pattern<1, Linear<8, 8>, 1, LayerNorm<8>>> h{"h"};
  Linear<8, 8> other{"h.1"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return other(h(x)); }
};
static_assert(parameters<M>() >= 0);
