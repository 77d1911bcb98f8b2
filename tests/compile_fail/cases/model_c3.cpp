// SPDX-License-Identifier: Apache-2.0
//
// A name that C does not take.
// expect: forward: an entry requires names that are identifiers in C and C++ [model_c3]: got 2nd (model_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names inputs{"2nd"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
};
static_assert(parameters<M>() >= 0);
