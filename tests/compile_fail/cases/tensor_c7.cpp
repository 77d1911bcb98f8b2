// SPDX-License-Identifier: Apache-2.0
//
// A tensor is indexed like an array.
// expect: kiln: operator []: a tensor is no array; expected kiln::slice, kiln::last or kiln::gather [tensor_c7]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x[0]; }
};
static_assert(parameters<M>() >= 0);
