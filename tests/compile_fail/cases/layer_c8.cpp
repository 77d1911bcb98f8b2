// SPDX-License-Identifier: Apache-2.0
//
// The arguments have the opposite order.
// expect: layer: it cannot be called with these arguments; expected tensors, then options, got options of attention and f32[tokens 1..64, 8] [layer_c8]
#include "case.h"
using namespace kiln;
struct M : Model {
  MultiHeadAttention<8, 2> attn{"attn"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return attn(causal, x); }
};
static_assert(parameters<M>() >= 0);
