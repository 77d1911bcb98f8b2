// SPDX-License-Identifier: Apache-2.0
//
// The summed extents differ.
// expect: forward: einsum: different dimensions of a letter; expected equal ones, since no axes broadcast, got j of 8 and 7 [einsum_c7] (einsum_c7.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, 7, 3> y) const { return einsum<"ij,jk->ik">(x, y); }
};
static_assert(parameters<M>() >= 0);
