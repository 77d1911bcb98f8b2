// SPDX-License-Identifier: Apache-2.0
//
// The name of a stack has a dot, and a parameter of another layer continues it with a number.
// expect: a.h: layer, parameter or state: name of a stack followed by a number; expected one that no layer of the stack may have, got 0.gain [layer_c9]
#include "case.h"
using namespace kiln;
struct Block : Layer<Block> {
  using Layer::Layer;
  constexpr auto forward(const tensor auto &x) const { return x * parameter<f32, 8>(x, "gain"); }
};
struct Gain : Layer<Gain> {
  using Layer::Layer;
  constexpr auto forward(const tensor auto &x) const { return x * parameter<f32, 8>(x, "0.gain"); }
};
struct Inner : Layer<Inner> {
  using Layer::Layer;
  Gain h{"h"};
  constexpr auto forward(const tensor auto &x) const { return h(x); }
};

struct M : Model {
  Stack<2, Block> blocks{"a.h"};
  Inner a{"a"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return a(blocks(x)); }
};
static_assert(parameters<M>() >= 0);
