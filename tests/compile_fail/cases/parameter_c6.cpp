// SPDX-License-Identifier: Apache-2.0
//
// A vector has a storage format of fewer bits.
// expect: forward: parameter stored in fewer bits: rank too small; expected 2 or more, got [8] [parameter_c6] (parameter_c6.cpp:9)
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x + parameter<stored<bf16>, 8>(x, "w"); }
};
static_assert(parameters<M>() >= 0);
