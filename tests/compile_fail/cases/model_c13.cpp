// SPDX-License-Identifier: Apache-2.0
//
// The entry has more results than names are possible.
// expect: kiln: entry: too many results; expected at most 16 [model_c13]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return kiln::outputs(x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x);
  }
};
static_assert(parameters<M>() >= 0);
