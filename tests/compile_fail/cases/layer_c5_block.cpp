// SPDX-License-Identifier: Apache-2.0
//
// The element type of a block is that of its layers' weights.
// expect: kiln: layer: wrong element type of the weights; expected a floating-point one [layer_c5]
#include "case.h"
using namespace kiln;

struct M : Model {
  Stack<2, EncoderBlock<8, 2, 16, BlockOptions{.weight = i8}>> h{"h"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return h(x); }
};
static_assert(parameters<M>() >= 0);
