// SPDX-License-Identifier: Apache-2.0
//
// The number of heads does not divide the width.
// expect: kiln: cache of int8: width is not divisible by the heads; expected heads that divide it [cache_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return attention<3>(x, x, x, cached<Dim{"context", T, 64}, int8>);
  }
};
static_assert(parameters<M>() >= 0);
