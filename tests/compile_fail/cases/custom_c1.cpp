// SPDX-License-Identifier: Apache-2.0
//
// The name of a custom function is no identifier of C.
// expect: forward: custom: invalid name of the function; expected an identifier in C and C++, got bi-quad [custom_c1]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return custom<"bi-quad", Tensor<f32, T, 8>>(x); }
};
static_assert(parameters<M>() >= 0);
