// SPDX-License-Identifier: Apache-2.0
//
// A window of int8.
// expect: kiln: cache of a window: unsupported element type; expected f32, f16 or bf16 [cache_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return attention<2>(x, x, x, cached_window<Dim{"context", T, 64}, 8, int8>);
  }
};
static_assert(parameters<M>() >= 0);
