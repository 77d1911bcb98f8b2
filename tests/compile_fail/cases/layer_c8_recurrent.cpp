// SPDX-License-Identifier: Apache-2.0
//
// An argument is all results of a recurrent layer.
// expect: layer: it cannot be called with these arguments; expected tensors, then options, got the outputs and the last state of a recurrent layer [layer_c8]
#include "case.h"
using namespace kiln;
struct M : Model {
  Gru<8, 8> gru{"gru"};
  Linear<8, 4> head{"head"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return head(gru(x)); }
};
static_assert(parameters<M>() >= 0);
