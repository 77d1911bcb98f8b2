// SPDX-License-Identifier: Apache-2.0
//
// A tensor is cast to boolean.
// expect: forward: cast: unsupported result type; expected f32, f16, bf16, i32 or i8, got boolean [cast_c1] (cast_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return cast<boolean>(x); }
};
static_assert(parameters<M>() >= 0);
