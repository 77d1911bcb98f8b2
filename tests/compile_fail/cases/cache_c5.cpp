// SPDX-License-Identifier: Apache-2.0
//
// A window of the row itself.
// expect: kiln: cache of a window: too few keys; expected at least two [cache_c5]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return attention<2>(x, x, x, cached_window<Dim{"context", T, 64}, 1>);
  }
};
static_assert(parameters<M>() >= 0);
