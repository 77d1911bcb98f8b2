// SPDX-License-Identifier: Apache-2.0
//
// An argument is a layer, not its result.
// expect: layer: it cannot be called with these arguments; expected tensors, then options, got a layer [layer_c8]
#include "case.h"
using namespace kiln;
struct M : Model {
  LayerNorm<8> norm{"norm"};
  Linear<8, 4> head{"head"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return head(norm); }
};
static_assert(parameters<M>() >= 0);
