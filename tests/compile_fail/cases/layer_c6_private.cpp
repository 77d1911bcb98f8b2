// SPDX-License-Identifier: Apache-2.0
//
// The forward of a layer is private.
// expect: layer: its forward cannot be called with these arguments; expected a public const one that takes them, got f32[tokens 1..64, 8] [layer_c6]
#include "case.h"
using namespace kiln;
struct Block : Layer<Block> {
  using Layer::Layer;

private:
  constexpr auto forward(const tensor auto &x) const { return relu(x); }
};

struct M : Model {
  Block block{"block"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return block(x); }
};
static_assert(parameters<M>() >= 0);
