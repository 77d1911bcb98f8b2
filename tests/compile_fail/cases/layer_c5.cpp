// SPDX-License-Identifier: Apache-2.0
//
// A layer whose weights are not f32.
// expect: kiln: a layer requires weights of f32, since no others are generated yet [layer_c5]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 16, true, WeightOrder::out_in, bf16> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
