// SPDX-License-Identifier: Apache-2.0
//
// A layer is called without arguments.
// expect: layer: it cannot be called with these arguments; expected tensors, then options, got nothing [layer_c8]
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 4> head{"head"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x) + head(); }
};
static_assert(parameters<M>() >= 0);
