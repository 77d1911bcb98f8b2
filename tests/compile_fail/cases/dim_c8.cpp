// SPDX-License-Identifier: Apache-2.0
//
// The name of a dimension is no C identifier.
// expect: forward: dimension: invalid name; expected an identifier in C and C++, got my rows [dim_c8]
#include "case.h"
using namespace kiln;
constexpr Dim rows{"my rows", 1, 8};
struct M : Model {
  constexpr auto forward(Tensor<f32, rows, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
