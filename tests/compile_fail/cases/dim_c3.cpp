// SPDX-License-Identifier: Apache-2.0
//
// An extent is the product of three dynamic dimensions.
// expect: forward: product of dimensions: unsupported form; expected at most two terms of at most two symbols, got batch and tokens and source [dim_c3] (dim_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, B, T, 8> x) const { return reshape<B * T * S, 8>(x); }
};
static_assert(parameters<M>() >= 0);
