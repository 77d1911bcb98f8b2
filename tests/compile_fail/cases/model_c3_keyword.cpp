// SPDX-License-Identifier: Apache-2.0
//
// A name is a C keyword.
// expect: forward: entry: invalid name; expected identifiers in C and C++, got int [model_c3] (model_c3_keyword.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names inputs{"int"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
