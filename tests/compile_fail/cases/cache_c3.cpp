// SPDX-License-Identifier: Apache-2.0
//
// A sink for each head, of attention with an int8 cache.
// expect: kiln: cache of int8: options with tensors; expected other options, or another type [cache_c3]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 2> s) const {
    return attention<2>(x, x, x, cached<Dim{"context", T, 64}, int8> | sinks(s));
  }
};
static_assert(parameters<M>() >= 0);
