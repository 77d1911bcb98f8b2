// SPDX-License-Identifier: Apache-2.0
//
// The element type of the cache is int4.
// expect: kiln: cache: unsupported element type; expected f32, f16, bf16 or int8 [cache_c1]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return attention<2>(x, x, x, cached<Dim{"context", T, 64}, int4<32>>);
  }
};
static_assert(parameters<M>() >= 0);
