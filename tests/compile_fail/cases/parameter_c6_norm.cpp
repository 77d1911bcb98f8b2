// SPDX-License-Identifier: Apache-2.0
//
// The weight of a norm has a storage format of fewer bits.
// expect: ln: parameter stored in fewer bits: rank too small; expected 2 or more, got [8] [parameter_c6] (parameter_c6_norm.cpp:10)
#include "case.h"
using namespace kiln;

struct M : Model {
  LayerNorm<8, int8> ln{"ln"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return ln(x); }
};
static_assert(parameters<M>() >= 0);
