// SPDX-License-Identifier: Apache-2.0
//
// The shapes do not broadcast.
// expect: h.attn: elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got f32[tokens 1..64, 512] and f32[tokens 1..64, 768] [broadcast_c1]
#include "case.h"
using namespace kiln;
struct Add : Layer<Add> {
  using Layer::Layer;
  constexpr auto forward(const tensor auto &x, const tensor auto &y) const { return x + y; }
};

struct M : Model {
  Add h{"h.attn"};
  constexpr auto forward(Tensor<f32, T, 512> x, Tensor<f32, T, 768> y) const { return h(x, y); }
};
static_assert(parameters<M>() >= 0);
