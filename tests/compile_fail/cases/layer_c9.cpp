// SPDX-License-Identifier: Apache-2.0
//
// A layer has the name of a layer of the stack next to it.
// expect: forward: layer, parameter or state: name of a stack followed by a number; expected one that no layer of the stack may have, got h.1 [layer_c9]
#include "case.h"
using namespace kiln;
struct Block : Layer<Block> {
  using Layer::Layer;
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(const tensor auto &x) const { return fc(x); }
};

struct M : Model {
  Stack<2, Block> h{"h"};
  Linear<8, 8> last{"h.1"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return last(h(x)); }
};
static_assert(parameters<M>() >= 0);
