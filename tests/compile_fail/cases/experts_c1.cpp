// SPDX-License-Identifier: Apache-2.0
//
// Each token has more experts than there are.
// expect: kiln: experts: wrong number of experts; expected at most 1024, and at least as many as each token has [experts_c1]
#include "case.h"
using namespace kiln;
struct M : Model {
  Experts<8, 16, 2, 3> experts{"experts"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return experts(x); }
};
static_assert(parameters<M>() >= 0);
