// SPDX-License-Identifier: Apache-2.0
//
// A name is no C identifier.
// expect: forward: entry: invalid name; expected identifiers in C and C++, got 2nd [model_c3] (model_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names inputs{"2nd"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
