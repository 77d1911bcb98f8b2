// SPDX-License-Identifier: Apache-2.0
//
// A layer does not inherit the constructor of its base.
// expect: kiln: layer: it has no constructor that takes its name; expected `using Layer::Layer;` in it, in a template `using kiln::Layer<Self>::Layer;` [layer_c7]
#include "case.h"
using namespace kiln;
struct Block : Layer<Block> {
  constexpr auto forward(const tensor auto &x) const { return relu(x); }
};

struct M : Model {
  Block block{"block"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return block(x); }
};
static_assert(parameters<M>() >= 0);
