// SPDX-License-Identifier: Apache-2.0
//
// An extent is the sum of two dynamic dimensions.
// expect: forward: sum of dimensions: unsupported form; expected offset + factor * s0 * s1, got tokens and source [dim_c4] (dim_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return expand<T + S, T, 8>(x); }
};
static_assert(parameters<M>() >= 0);
