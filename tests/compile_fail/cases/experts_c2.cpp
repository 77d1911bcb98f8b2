// SPDX-License-Identifier: Apache-2.0
//
// The tokens are wider than the experts.
// expect: mlp: experts: wrong width of the tokens; expected 8, got 16 [experts_c2] (experts_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Experts<8, 16, 4, 2> mlp{"mlp"};
  constexpr auto forward(Tensor<f32, T, 16> x) const { return mlp(x); }
};
static_assert(parameters<M>() >= 0);
