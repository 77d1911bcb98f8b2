// SPDX-License-Identifier: Apache-2.0
//
// An extent is the sum of three dynamic dimensions.
// expect: forward: sum of dimensions: unsupported form; expected at most two terms, got source and tokens and batch [dim_c4] (dim_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return expand<T + S + B, T, 8>(x); }
};
static_assert(parameters<M>() >= 0);
