// SPDX-License-Identifier: Apache-2.0
//
// A layer counts its calls.
// expect: forward: model: a member of it or of its layers is mutable; expected members that a call does not change [model_c17]
#include "case.h"
using namespace kiln;
struct Block : Layer<Block> {
  using Layer::Layer;
  mutable int calls = 0;
  constexpr auto forward(const tensor auto &x) const {
    ++calls;
    return relu(x);
  }
};

struct M : Model {
  Block block{"block"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return block(x); }
};
static_assert(parameters<M>() >= 0);
