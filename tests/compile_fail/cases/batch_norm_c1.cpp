// SPDX-License-Identifier: Apache-2.0
//
// The layer has eight channels, the image four.
// expect: norm: batch_norm: wrong input width; expected 4, got 8 [batch_norm_c1] (batch_norm_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  BatchNorm2d<4> norm{"norm"};
  constexpr auto forward(Tensor<f32, 2, 8> x) const { return norm(x); }
};
static_assert(parameters<M>() >= 0);
