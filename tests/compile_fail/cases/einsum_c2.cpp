// SPDX-License-Identifier: Apache-2.0
//
// The first axes have no letters.
// expect: forward: einsum: ellipsis in the equation; expected a letter for each axis, since no axes broadcast, got ...ij->...ji [einsum_c2] (einsum_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8, 3> x) const { return einsum<"...ij->...ji">(x); }
};
static_assert(parameters<M>() >= 0);
