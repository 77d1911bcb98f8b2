// SPDX-License-Identifier: Apache-2.0
//
// The weights of a layer are integers.
// expect: kiln: layer: wrong element type of the weights; expected a floating-point one [layer_c5]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 16, true, WeightOrder::out_in, i8> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
