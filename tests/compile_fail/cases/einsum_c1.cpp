// SPDX-License-Identifier: Apache-2.0
//
// The equation has no result.
// expect: forward: einsum: malformed equation; expected one or two lists of letters, -> and a list of letters, got ij,jk [einsum_c1] (einsum_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 8, 3> y) const { return einsum<"ij,jk">(x, y); }
};
static_assert(parameters<M>() >= 0);
