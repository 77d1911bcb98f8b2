// SPDX-License-Identifier: Apache-2.0
//
// The input has another width than the layer.
// expect: h.{}.mlp.c_fc: linear: wrong input width; expected 768, got 512 [linear_c1] (linear_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct Block {
  Linear<768, 512> fc{"mlp.c_fc"};
  constexpr auto forward(const tensor auto &x) const { return fc(x); }
};

struct M : Model {
  Stack<2, Block> h{"h"};
  constexpr auto forward(Tensor<f32, T, 512> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
